"""YAML to checked values; every finding at once, each with its place."""
