"""Weights of a model in a GGUF file.

Files of some architectures have query and key rows in the order of llama.cpp's rotary kernel, which
rotates elements 2i and 2i+1 of a head; `raw` restores the order of `rotate_half`. Whole rows are
permuted, so quantised matrices stay exact.

Source: GGUF specification, standardised tensor names; llama.cpp `convert_hf_to_gguf.py`.
"""

import mmap

from relax_mlir.llm.architectures.registry import of_gguf
from relax_mlir.llm.checkpoints.weights import WeightSource, check_shapes
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.quantization import RawTensor

OF_ROPE = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors that are part of the configuration."""
ROW = ".ffn_gate_inp_shexp.weight"
"""A matrix of one row, which most files store as a vector."""


class GgufWeights(WeightSource):
    """The weights in `file`; raises ModelError if it has no complete model that is supported."""

    def __init__(self, file: GgufFile) -> None:
        self.file, self.where = file, str(file.path)
        self.architecture, self.config = of_gguf(file)
        tensors = self.architecture.gguf_tensors(self.config, file.tensors)
        shapes = {n: _shape(n, t.shape) for n, t in file.tensors.items() if n not in OF_ROPE}
        check_shapes(str(file.path), self.config, tensors, shapes)
        for stored in file.tensors:
            file.check_format(stored)
        self._arrange(tensors)

    def stored(self, name: str) -> RawTensor:
        """See `WeightSource.stored`."""
        raw = self.file.raw(name)
        if name.endswith(ROW):
            return RawTensor(raw.format, _shape(name, raw.shape), raw.data.reshape(1, -1))
        return raw

    def stored_format(self, name: str) -> str:
        """See `WeightSource.stored_format`."""
        return self.file.tensors[name].format

    def release(self) -> None:
        """See `WeightSource.release`."""
        self.file.buffer.madvise(mmap.MADV_DONTNEED)


def _shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *shape) if name.endswith(ROW) and len(shape) == 1 else shape
