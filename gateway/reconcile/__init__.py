"""The nightly proof: what came in against what went out; the only package that uses Spark."""
