"""Log lines for machines and for people, without secrets and without floods."""
