"""Tools to test compiled code."""
