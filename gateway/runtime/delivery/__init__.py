"""Decides about messages: states that take events and return actions, without threads or I/O."""
