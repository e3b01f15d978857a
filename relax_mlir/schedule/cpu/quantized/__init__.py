"""Matrix products whose right side is decoded from numbers of few bits."""
