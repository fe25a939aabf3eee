"""Questions become query triplets, and evidence resolves them."""
