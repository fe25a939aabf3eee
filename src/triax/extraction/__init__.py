"""Chunks become triplets, triplets become propositions."""
