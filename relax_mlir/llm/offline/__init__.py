"""Answers files of prompts, many at once."""
