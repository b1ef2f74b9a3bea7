"""The proofs themselves."""
