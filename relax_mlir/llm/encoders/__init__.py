"""Encoders of texts as vectors: their files, compilation, and batches of any lengths."""
