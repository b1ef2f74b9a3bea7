"""Frozen settings of every kind of endpoint; data only, no driver is imported."""
