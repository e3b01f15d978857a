"""CHLO has no classes in Python; the bindings look for this module when they meet an op of it."""
