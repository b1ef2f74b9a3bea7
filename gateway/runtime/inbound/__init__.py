"""The receiving side: threads and files around admission, header rules and recovery."""
