"""Finished runs become tables and readable traces."""
