"""Programs that measure; `make bench` runs them all, one after the other."""
