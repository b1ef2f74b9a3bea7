"""Routes taken apart into flows, the form in which every proof sees them."""
