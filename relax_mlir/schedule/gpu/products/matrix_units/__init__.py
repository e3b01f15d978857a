"""Products of sides with 16 or 8 bits, by units of devices that multiply matrices.

warpgroups        four warps multiply what is in memory of their group (NVIDIA's sm_90a)
tensor_cores      warps multiply what they have in registers
cooperative       subgroups do, on devices of Vulkan
warp_convolution  filters times images, by tensor_cores or cooperative
"""
