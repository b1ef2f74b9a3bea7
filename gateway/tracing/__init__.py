"""Traces of what the gateway carries: W3C context in, a span for each hop, OTLP out."""
