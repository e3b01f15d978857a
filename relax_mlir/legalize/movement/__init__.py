"""Operators that move elements, or repeat and leave out some."""
