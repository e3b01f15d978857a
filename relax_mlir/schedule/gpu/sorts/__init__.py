"""Sorts on devices: digit by digit, in groups of threads."""
