"""Commands over an archive: reconcile, follow, replay, compact, names and generate."""
