"""Names and subscriptions of one system in the words of another."""
