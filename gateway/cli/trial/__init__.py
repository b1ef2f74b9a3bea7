"""Commands to try the product: brokers of its own and the demo."""
