"""Operators that add up products, and the formats of their quantised operands."""
