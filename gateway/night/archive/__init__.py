"""The archive as nights read it: segments, seals, verification, compaction, lookup."""
