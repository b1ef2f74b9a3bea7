"""The record of each outcome: archive rows, counters, gaps, taps, and messages restored."""
