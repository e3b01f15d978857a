"""Code generation for CPUs: loops and vectors to LLVM, to objects, to shared libraries."""
