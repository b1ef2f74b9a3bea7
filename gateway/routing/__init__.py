"""Which routes take a message: patterns, captures, templates and the index over them."""
