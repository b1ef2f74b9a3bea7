"""SMF as facts/smf.md records it: bytes to values and back, without input or output."""
