"""The input of a reconciliation: the files of a day, their footers, and their rows."""
