"""Instructions of CPUs that MLIR has no ops for, and addresses as LLVM sees them."""
