"""Values of the gateway: messages, subjects, patterns, and exact questions about patterns."""
