"""Lessons: rows of data sets become examples."""
