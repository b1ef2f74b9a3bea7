"""Commands for trials: the built-in brokers and the demo."""
