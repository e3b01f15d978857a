"""Reads tensor programs: stages, accesses, contractions, where tensors lie. Emits nothing."""
