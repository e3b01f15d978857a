"""Matrix products with an elementwise epilogue, by tiles of the result.

warpgroups        sides of 16 bits, on devices whose warps multiply them four by four
tensor_cores      sides of 16 bits, on devices that multiply matrices: a group's warps do
cooperative       sides of f16 or i8, on devices of Vulkan whose subgroups multiply matrices
few_rows          up to four rows, where the host finds that there are no more
tiles             any other elements: a thread sums some elements of the tile
convolution       filters times images, by the same tiles
warp_convolution  of 16 or 8 bits: by those of tensor_cores
"""
