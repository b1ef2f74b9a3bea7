"""The report of a night as text, JSON and HTML."""
