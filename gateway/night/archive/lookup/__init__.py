"""Lookups in an archive: rows by route and time, whole names of shortened ones."""
