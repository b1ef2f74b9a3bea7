"""The findings of `gateway check` about a configuration: the proofs and further checks."""
