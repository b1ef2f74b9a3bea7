"""Nights: the links of a chain of judged dates."""
