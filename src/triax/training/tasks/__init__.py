"""What can be trained: one task a file."""
