"""The compiled decoder, with weights in its layout; both are cached on disk."""
