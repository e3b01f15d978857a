"""Attention in one pass over keys and values, with and without a cache."""
