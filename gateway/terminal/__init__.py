"""Output for people: foreign text made safe, tables, units and progress."""
