"""Commands for shells."""
