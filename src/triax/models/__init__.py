"""Flax modules, their weights and tokenisers."""
