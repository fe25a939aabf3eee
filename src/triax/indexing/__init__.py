"""Propositions become searchable."""
