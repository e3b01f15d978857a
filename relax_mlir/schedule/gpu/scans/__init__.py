"""Scans on devices: rows and columns that groups of threads share."""
