"""A whole method as one object that answers questions."""
