"""The outcome of every message: DataFrame transforms from archive rows to classes."""
