"""One proof a module, each with a counter-example when it fails."""
