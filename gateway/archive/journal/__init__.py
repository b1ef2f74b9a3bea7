"""The write-ahead journal: rows are durable here before a source is settled."""
