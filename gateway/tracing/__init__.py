"""Tracing of relayed messages: W3C trace context, a span for each target, OTLP export."""
