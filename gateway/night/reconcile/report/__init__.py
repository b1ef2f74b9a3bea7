"""The report of one reconciled date as text, JSON and HTML."""
