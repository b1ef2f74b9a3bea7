"""Archive rows of what was received and delivered, and the message back from its row."""
