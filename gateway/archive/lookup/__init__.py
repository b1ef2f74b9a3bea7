"""Lookups in an archive: rows by time and route, full names of short ones."""
