"""Answers files of prompts, many at once, on this machine or on a cluster of Ray."""
