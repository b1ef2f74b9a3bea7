"""Logging: JSON or text lines, without secrets, with repeated lines counted."""
