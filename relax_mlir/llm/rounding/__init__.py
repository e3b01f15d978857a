"""Rounds matrices to the blocks of GGUF files, plainly or by what they are multiplied with."""
