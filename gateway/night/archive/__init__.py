"""What nights read and make of an archive: segments, seals, verification, compaction, lookup."""
