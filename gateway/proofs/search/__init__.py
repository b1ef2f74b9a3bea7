"""Searches for names: equations between levels, examples, samples and translated names."""
