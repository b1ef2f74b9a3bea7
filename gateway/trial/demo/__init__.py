"""The demo: real brokers, a sample feed, the archive and a reconciliation."""
