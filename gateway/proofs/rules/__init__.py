"""The proofs; one module for each question."""
