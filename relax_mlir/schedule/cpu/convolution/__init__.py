"""Convolutions and pooling: images, tiles of pixels, Winograd's transforms."""
