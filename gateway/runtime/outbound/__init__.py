"""The sending side: one lane per target, its backlog, the spool and dead letters."""
