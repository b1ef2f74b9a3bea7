"""Shovels of RabbitMQ's definitions to a mapping."""
