"""The checks of `gateway check` beyond the proofs; no connection is opened."""
