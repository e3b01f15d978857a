"""Means to test compiled code."""
