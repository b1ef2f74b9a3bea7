"""Commands over names and mappings: check, explain, translate, preflight, import and test."""
