"""Models that are ready to run: sessions with caches, sampling, conversations."""
