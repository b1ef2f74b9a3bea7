"""The night's house: journals become segments, nights judge them, and messages are sent again.

It reads what the bridge has written, and the bridge imports nothing of it.
"""
