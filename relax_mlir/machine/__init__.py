"""Measures the peaks of a machine, and saves the figures."""
