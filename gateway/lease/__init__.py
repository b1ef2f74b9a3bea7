"""The lease of a pair: one of its instances may hand messages over, for a time, by a number.

`lease` decides, without a clock, a thread or a file. `holder` is the thread and the clock around
it. `file_store` and `kubernetes_store` keep a lease.
"""
