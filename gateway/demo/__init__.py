"""The product in two minutes: real brokers, a believable feed, the archive, a reconciliation."""
