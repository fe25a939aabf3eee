"""Question -> route: whether vanilla retrieval suffices or graph retrieval is needed."""
