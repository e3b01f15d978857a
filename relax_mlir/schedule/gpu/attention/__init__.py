"""Attention on devices: one pass over keys and values, with an online softmax."""
