"""Matrix products of floats and integers: packing, blocks, tiles, epilogues."""
