"""One module per system: its facts as a `Dialect`, each with its source."""
