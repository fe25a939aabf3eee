"""Numbers from plain predictions; no config, no input or output."""
