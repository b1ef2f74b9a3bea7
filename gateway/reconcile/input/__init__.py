"""The files of a day: which ones count, their footers, and their rows as DataFrames."""
