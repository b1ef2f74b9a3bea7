"""Wire formats: bytes to values and back, with no input or output of their own."""
