"""AMQP 1.0: values, frames and the sections of a message, as bytes and back."""
