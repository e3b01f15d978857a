"""OpenVINO, on the plain PyTorch decoder, converted and made stateful.

python llm_openvino.py WORK     builds WORK/openvino
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino
from peers.llm_decoder import Decoder, Program, Replayed

MODEL = "openvino/model.xml"


class OpenVino(Decoder):
    """An inference request whose state holds the caches."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        core = openvino.Core()
        options = {
            "INFERENCE_PRECISION_HINT": weights,
            "KV_CACHE_PRECISION": weights,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }
        self._request = core.compile_model(work / MODEL, "CPU", options).create_infer_request()
        self._replayed = Replayed()
        self._order = np.zeros(1, np.int32)

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        self._replayed.tokens += tokens
        inputs = {"tokens": np.array([tokens], np.int64), "beam_idx": self._order}
        self._request.infer(inputs, share_inputs=True)

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._request.reset_state()
        if remaining := self._replayed.cut(length):
            self.append(remaining)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._request.get_output_tensor(0).data.reshape(-1)


class OpenVinoProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(OpenVino, openvino.__version__.partition("-")[0], threads)


def build(work: Path) -> None:
    """Converts the model; its caches become variables, reordered by `beam_idx` as usual."""
    import torch
    from openvino._offline_transformations import apply_make_stateful_transformation
    from peers.llm_plain import empty_caches, load_plain

    class Reordered(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = load_plain(work / "hf")

        def forward(self, tokens, beam_idx, *past):
            return self.model(tokens, *(cache.index_select(0, beam_idx) for cache in past))

    wrapped = Reordered()
    caches = empty_caches(wrapped.model, 2)
    beams = torch.zeros(1, dtype=torch.int32)
    example = (torch.ones(1, 3, dtype=torch.int64), beams, *caches)
    heads, dim = caches[0].shape[1], caches[0].shape[3]
    names = ["tokens", "beam_idx"] + [f"past.{i}" for i in range(len(caches))]
    shapes = [[-1, -1], [-1]] + [[-1, heads, -1, dim]] * len(caches)
    model = openvino.convert_model(wrapped, example_input=example)
    for port, name, shape in zip(model.inputs, names, shapes, strict=True):
        port.node.set_partial_shape(openvino.PartialShape(shape))
        port.tensor.set_names({name})
    for index, port in enumerate(model.outputs):
        port.tensor.set_names({f"present.{index - 1}" if index else "logits"})
    model.validate_nodes_and_infer_types()
    pairs = {f"past.{i}": f"present.{i}" for i in range(len(caches))}
    apply_make_stateful_transformation(model, pairs)
    _begin_empty(model, heads, dim)
    openvino.save_model(model, work / MODEL, compress_to_fp16=False)


def _begin_empty(model: openvino.Model, heads: int, dim: int) -> None:
    """Says that the variables hold no tokens at first: [len(beam_idx), heads, 0, dim]."""
    from openvino import opset13

    beams = opset13.shape_of(model.input("beam_idx"), output_type="i64")
    rest = opset13.constant(np.array([heads, 0, dim], np.int64))
    shape = opset13.concat([beams, rest], axis=0)
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            zero = opset13.constant(0.0, dtype=np.float32)
            node.set_arguments([opset13.broadcast(zero, shape)])
    model.validate_nodes_and_infer_types()


if __name__ == "__main__":
    build(Path(sys.argv[1]))
