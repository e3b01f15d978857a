"""Operators that compute each element on its own."""
