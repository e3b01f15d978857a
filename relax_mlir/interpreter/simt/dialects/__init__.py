"""What ops compute for all threads at once: a file for each dialect of MLIR."""
