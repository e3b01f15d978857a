"""Operators that combine the elements along axes."""
