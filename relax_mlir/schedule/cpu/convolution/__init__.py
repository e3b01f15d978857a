"""Convolutions and pooling: images, tiles of places, Winograd's transforms."""
