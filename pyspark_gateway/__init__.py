"""Lets Spark find the data source `gateway` by itself: it imports packages named `pyspark_*`."""

from gateway.night.reconcile.spark_source import GatewaySource as DefaultSource

__all__ = ["DefaultSource"]
