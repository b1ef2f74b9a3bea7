"""Flows: the form of routes that the proofs work on."""
