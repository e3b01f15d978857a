"""Benchmarks of the kind of HPVM's as dataflow graphs, a file each, whose function has its name."""
