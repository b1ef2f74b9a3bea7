"""The running gateway: its threads, from receiving to delivery and recording."""
