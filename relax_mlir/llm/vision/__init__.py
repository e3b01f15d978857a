"""Vision: images as rows of a decoder's input, by compiled preprocessing and encoders."""
