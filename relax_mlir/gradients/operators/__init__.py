"""The rules of gradients, one file per family of operators."""
