"""The receiving side: threads and files around admission, header rules, gaps and recovery."""
