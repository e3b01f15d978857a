"""The module layer: blocks with parameters, whose calls build graph operators."""
