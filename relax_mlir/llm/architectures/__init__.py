"""Architectures of language models, each a file over the shared blocks."""
