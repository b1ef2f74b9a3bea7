"""Verification of an archive: journals, seals, heads and files that must agree."""
