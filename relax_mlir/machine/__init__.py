"""Measures what a machine can do at best, and keeps the figures."""
