"""Commands for a running gateway: run, status, top and dead-letters."""
