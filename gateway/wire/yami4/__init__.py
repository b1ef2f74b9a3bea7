"""YAMI4 on the wire: frames, typed parameters and message headers."""
