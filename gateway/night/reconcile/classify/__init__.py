"""Classification of every copy of a message: DataFrame transforms from rows to result tables."""
