"""The receiving side: admission, duplicates, echoes and header mapping."""
