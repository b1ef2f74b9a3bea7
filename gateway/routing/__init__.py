"""Routes: source patterns, templates, header rules, selectors, and the index that finds them."""
