"""Matrix products with an elementwise epilogue, by tiles of the result.

tiles         a thread sums some elements of the tile
few_rows      up to four rows, where the host finds that there are no more
split         long sums of few tiles, in parts
convolution   filters times images, by the same tiles
matrix_units  sides of 16 or 8 bits, on devices that multiply matrices
"""
