"""Weights of a model in a Hugging Face folder: `config.json` and safetensors files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Stored
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.architectures.vision_language import decoder_name
from relax_mlir.llm.checkpoints.weights import WeightSource, check_shapes
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.packed_weights import PARTS, PackedMatrix, packing_of
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor
from relax_mlir.llm.formats.safetensors_files import StoredTensor, read_folder, release
from relax_mlir.llm.modules.config import DecoderConfig


class HuggingFaceWeights(WeightSource):
    """The weights in `folder`; raises ModelError if it has no complete model that is supported."""

    def __init__(
        self,
        folder: Path,
        known: tuple[Architecture, DecoderConfig] | None = None,
        more: Mapping[str, StoredTensor] = MappingProxyType({}),
    ) -> None:
        """Reads tables alone; `known` replaces what `config.json` says, `more` are tensors too."""
        self.where = str(folder)
        self.architecture, self.config = known or of_folder(folder)
        self._tensors = {**self._of_decoder(read_folder(folder)), **more}
        self._find_packed(folder)
        tensors = self._by_rows(self.architecture.hf_tensors(self.config))
        self._drop_unused({tensor.name for tensor in tensors})
        shapes = {name: tensor.shape for name, tensor in self._tensors.items()}
        check_shapes(str(folder), self.config, tensors, {**shapes, **self._packed})
        for name, tensor in self._tensors.items():
            if tensor.format not in PLAIN:
                formats = ", ".join(PLAIN)
                dtype = f"has dtype {tensor.format}; expects {formats}"
                raise ModelError(f"{folder}: weight {quoted(name)} {dtype}")
        self._arrange(tensors)

    def stored(self, name: str) -> RawTensor:
        """See `WeightSource.stored`."""
        return self._matrix(name).decode() if name in self._packed else self._tensors[name].view()

    def stored_format(self, name: str) -> str:
        """See `WeightSource.stored_format`."""
        return self._matrix(name).format if name in self._packed else self._tensors[name].format

    def release(self) -> None:
        """See `WeightSource.release`."""
        release([*self._tensors.values(), *self._parts.values()])

    def _of_decoder(self, tensors: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
        """The tensors of the decoder, by their names in a folder of it alone."""
        if self.config.image_id is None:
            return tensors
        names = {name: decoder_name(name) for name in tensors}
        return {own: tensors[name] for name, own in names.items() if own is not None}

    def _find_packed(self, folder: Path) -> None:
        """Sets the parts of packed matrices apart, and the shapes of the matrices."""
        self._parts: dict[str, StoredTensor] = {}
        self._packed: dict[str, tuple[int, ...]] = {}
        self._packing = packing_of(Fields.read_json(folder / "config.json"))
        if self._packing is None:
            return
        for name in [name for name in self._tensors if name.endswith(".qweight")]:
            module = name.removesuffix(".qweight")
            found = [part for part in PARTS if f"{module}.{part}" in self._tensors]
            parts = {part: self._tensors.pop(f"{module}.{part}") for part in found}
            shapes = {part: tensor.shape for part, tensor in parts.items()}
            shape = self._packing.shape(shapes)
            are_integers = all((t.format == "I32") != (p == "scales") for p, t in parts.items())
            if shape is None or not are_integers:
                raise ModelError(
                    f"{folder}: {quoted(module)} has the parts {quoted(shapes)}; expects a matrix "
                    f"of {self._packing.method} in groups of {self._packing.group or 'all'}"
                )
            self._parts.update({f"{module}.{part}": tensor for part, tensor in parts.items()})
            self._packed[f"{module}.weight"] = shape
            self._drop_zeros(f"{module}.bias")

    def _drop_zeros(self, name: str) -> None:
        """Drops a bias that some exporters add."""
        known = {tensor.name for tensor in self.architecture.hf_tensors(self.config)}
        bias = self._tensors.get(name)
        if bias is not None and name not in known and not bias.view().to_f32().any():
            del self._tensors[name]

    def _by_rows(self, tensors: Sequence[Stored]) -> list[Stored]:
        """The tensors; packed ones are (out, in) in all architectures."""
        return [replace(t, transposed=False) if t.name in self._packed else t for t in tensors]

    def _matrix(self, name: str) -> PackedMatrix:
        """The parts of a packed matrix."""
        assert self._packing is not None  # there are packed matrices
        module = name.removesuffix(".weight")
        names = {part: f"{module}.{part}" for part in PARTS}
        parts = {k: self._parts[name].view() for k, name in names.items() if name in self._parts}
        matrix = PackedMatrix.of(self._packing, parts)
        if matrix is None:
            raise ModelError(
                f"{self.where}: weight '{module}.g_idx' has a group that '{module}.scales' has not"
            )
        return matrix

    def _drop_unused(self, used: set[str]) -> None:
        """Drops extra tensors of some exporters: rotary tables, a second tied embedding."""
        rest = [name for name in self._tensors if name not in used]
        unused = [name for name in rest if self.architecture.is_unused(name, self.config)]
        if self.config.tie_embeddings:
            heads = ("lm_head.weight", "embed_out.weight")
            unused += [name for name in heads if name in self._tensors and name not in used]
        for name in unused:
            del self._tensors[name]
