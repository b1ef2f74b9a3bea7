"""Configuration files to checked values, or to findings with their locations."""
