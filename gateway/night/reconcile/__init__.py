"""Reconciliation of received and delivered messages with Spark, nightly or through the day."""
