"""Operators that put elements in order, or search in what is in order."""
