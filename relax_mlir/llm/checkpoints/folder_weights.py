"""Weights of a folder by their names there, for networks that are no decoders."""

from collections.abc import Callable, Sequence
from pathlib import Path

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import RawTensor
from relax_mlir.llm.formats.safetensors_files import read_folder, release
from relax_mlir.llm.modules.nn import BF16, Parameter


class FolderWeights:
    """The tensors of a folder by their names there; raises ModelError for one that is missing."""

    def __init__(self, folder: Path, rename: Callable[[str], str] = str) -> None:
        """Reads tables alone; `rename` gives the names that are asked for."""
        tensors = read_folder(folder)
        self._folder, self.where = folder, str(folder)
        self._tensors = {rename(name): tensor for name, tensor in tensors.items()}

    def check(self, parameters: Sequence[Parameter]) -> None:
        """Raises ModelError for a tensor that is missing, or of another shape."""
        for parameter in parameters:
            rows = 0
            for name in parameter.sources:
                tensor = self._tensors.get(name)
                if tensor is None:
                    raise ModelError(f"{self._folder}: has no weight '{name}'")
                shape = tensor.shape
                if shape[1:] != parameter.dims[1:] or len(shape) != len(parameter.dims):
                    raise self._refuse(name, shape, parameter)
                rows += shape[0]
            if rows != parameter.dims[0]:
                raise self._refuse(parameter.sources[0], (rows, *shape[1:]), parameter)

    def _refuse(self, name: str, shape: tuple[int, ...], parameter: Parameter) -> ModelError:
        return ModelError(
            f"{self._folder}: weight '{name}' has shape {quoted(shape)}; expects {parameter.dims}"
        )

    def halves(self) -> dict[str, str]:
        """The schemes of matrices in bfloat16."""
        return {
            name: BF16
            for name, tensor in self._tensors.items()
            if tensor.format == "BF16" and len(tensor.shape) == 2
        }

    def raw(self, name: str) -> RawTensor:
        """A tensor, memory-mapped."""
        return self._tensors[name].view()

    def release(self) -> None:
        """Releases the memory of pages that were read; they can be read again."""
        release(self._tensors.values())
