"""The search for names: equations between levels, examples and witnesses."""
