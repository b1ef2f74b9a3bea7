"""The durable record of all bridged messages, written before a source is settled."""
