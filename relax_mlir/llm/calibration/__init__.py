"""What the matrices of a model are multiplied with while it reads a text."""
