"""Translation of names and subscriptions from one system to another."""
