"""Triax: triplet-driven thinking. See docs/architecture.md for where each thing lives."""

__version__ = "0.1.0"
