"""Dialects: how each system spells names and subscriptions, and the limits it sets."""
