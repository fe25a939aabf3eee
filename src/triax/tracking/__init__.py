"""Where numbers go while a program runs."""
