"""Where time and memory of a decoder go, also compared with other programs."""
