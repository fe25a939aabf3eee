"""A named data set becomes records."""
