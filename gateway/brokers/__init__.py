"""Small brokers for trials, the demo and the tests; no production promises."""
