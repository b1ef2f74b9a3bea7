"""Solace Message Format (SMF): bytes to values and back."""
