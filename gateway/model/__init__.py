"""Frozen values of the gateway; standard library only."""
