"""Commands for an archive: reconcile, follow, replay, compact, forget, names and generate."""
