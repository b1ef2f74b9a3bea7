"""One module for each system: its dialect as data, with the source of every fact."""
