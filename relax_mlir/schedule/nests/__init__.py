"""Loop nests for any tensor program: planned lanes, clusters of stages, reductions of rows."""
