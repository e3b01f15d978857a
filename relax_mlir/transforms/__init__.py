"""One pass per file: the pass `relax-fuse-ops` is the class in `fuse_ops.py`."""
