"""Values of settings: references, placeholders, paths, numbers, and facts of the fields."""
