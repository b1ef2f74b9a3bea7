"""Small brokers for trials, the demonstration and the tests."""
