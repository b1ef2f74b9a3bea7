"""The sending side: the lane of each target, its backlog, the spool and dead letters."""
