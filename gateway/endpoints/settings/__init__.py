"""Settings of each kind of endpoint."""
