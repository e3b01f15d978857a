"""A compiler for tensor programs with symbolic shapes, on MLIR."""
