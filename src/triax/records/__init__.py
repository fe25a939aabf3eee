"""What travels: plain frozen records, their text forms, and the verbs that act on them."""
