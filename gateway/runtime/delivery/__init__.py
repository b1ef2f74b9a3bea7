"""A received batch on its way to its targets, until it is settled at the source."""
