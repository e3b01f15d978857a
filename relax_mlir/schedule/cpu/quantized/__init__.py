"""Matrix products whose right side is decoded from integers of few bits."""
