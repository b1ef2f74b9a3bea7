"""Seals: signed files that state which segments a journal became."""
