"""Small brokers, the demonstration and generated archives: no production uses them."""
