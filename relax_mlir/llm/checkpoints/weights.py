"""The weights of a model, from any file format: one naming scheme, one layout.

Names are those of Llama in Hugging Face's files (`model.layers.3.self_attn.q_proj.weight`),
projections are (out, in), and query and key rows are in the order that `rotate_half` expects:
element i of a head is rotated with element i + head_dim/2. `DecoderConfig.weight_shapes` lists the
names; `architectures/layout.py` says what files have instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Stored
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor
from relax_mlir.llm.modules.config import Changes, DecoderConfig


class WeightSource(ABC):
    """Weights by name. Opening a source reads no weight; each call reads one from the file."""

    config: DecoderConfig
    architecture: Architecture
    where: str
    """The file or folder, for messages."""
    changes: Changes = Changes()
    """What adapters add that requests choose."""

    def _arrange(self, tensors: Sequence[Stored]) -> None:
        """Says which of the file's `tensors` have the weights."""
        shapes = self.config.weight_shapes()
        self._slices: dict[str, tuple[Stored, slice]] = {}
        for tensor in tensors:
            begin = 0
            for part in tensor.parts:
                end = begin + shapes[part][0]
                self._slices[part] = (tensor, slice(begin, end))
                begin = end

    @abstractmethod
    def stored(self, name: str) -> RawTensor:
        """Tensor `name` of the file, read-only and memory-mapped."""

    @abstractmethod
    def stored_format(self, name: str) -> str:
        """The format of tensor `name` of the file, one of `quantization.FORMATS`."""

    @abstractmethod
    def release(self) -> None:
        """Releases the memory of pages that were read so far; they can be read again.

        Results of `raw` stay valid: they are mapped, and read again from the file.
        """

    def raw(self, name: str) -> RawTensor:
        """Weight `name` in its storage format (read-only, memory-mapped if rows keep their order).

        Raises KeyError if the model has no such weight: see `names`.
        """
        tensor, rows = self._slices[name]
        raw = self.stored(tensor.name)
        if tensor.transposed:
            raw = raw.transposed()
        if tensor.matrices:
            raw = raw.flattened()
        if tensor.dims or tensor.rates:
            raw = self._small(tensor, raw)
        if tensor.order is not None:
            raw = raw.take_rows(tensor.order[rows])
        elif len(tensor.parts) > 1:
            raw = raw.rows(rows.start, rows.stop)
        if tensor.plus:
            raw = RawTensor("F32", raw.shape, raw.to_f32() + np.float32(tensor.plus))
        return raw

    def format(self, name: str) -> str:
        """The format that `raw` has of weight `name`, one of `quantization.FORMATS`."""
        tensor, _ = self._slices[name]
        format = self.stored_format(tensor.name)
        decodes = tensor.dims or tensor.rates or (tensor.transposed and format not in PLAIN)
        return "F32" if decodes else format

    def _small(self, tensor: Stored, raw: RawTensor) -> RawTensor:
        """A weight of few elements, which has another shape or other values in the file."""
        values = raw.to_f32().reshape(self.config.weight_shapes()[tensor.parts[0]])
        if tensor.rates:
            if not (values <= 0).all():
                raise ModelError(
                    f"{self.where}: tensor '{tensor.name}' has rates of states that are not < 0"
                )
            with np.errstate(divide="ignore"):
                values = np.log(-values)
        return RawTensor("F32", values.shape, values)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all weights, in the order of the network."""
        return tuple(self.config.weight_shapes())

    def load_f32(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        """Weight `name`, decoded exactly into `out`, or into a new float32 array.

        It is (out, in) for a projection.
        """
        return self.raw(name).to_f32(out)


def check_shapes(
    where: str,
    config: DecoderConfig,
    tensors: Sequence[Stored],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Raises ModelError unless `shapes` (by name) are exactly those of the `tensors` of a file.

    An extra weight is refused too: it means that the model computes something else.
    """
    weights = config.weight_shapes()
    expected = {tensor.name: tensor.shape(weights) for tensor in tensors}
    for name, shape in expected.items():
        if name not in shapes:
            raise ModelError(f"{where}: has no weight '{name}'; expects one of shape {shape}")
        if shapes[name] != shape:
            raise ModelError(
                f"{where}: weight '{name}' has shape {quoted(shapes[name])}; expects {shape}"
            )
    for name in shapes:
        if name not in expected:
            raise ModelError(
                f"{where}: has a weight {quoted(name)} that a model of architecture "
                f"'{config.architecture}' with this configuration does not use"
            )
