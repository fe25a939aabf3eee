"""Queries become evidence."""
