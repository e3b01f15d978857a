"""The models that `frontends.py` measures: modules of PyTorch with random weights, or ONNX files.

    minilm      an encoder: 6 layers of 384, 12 heads            [b, n]
    gpt2        a decoder: 12 layers of 768, vocabulary 50257    [b, n]
    vit_tiny    12 layers of 192 on patches of 16 by 16          [b]
    resnet18    ResNet-18 on 224 by 224                          [b]
    FILE.onnx   a file; sizes are those of its symbolic dims

`onnx_file` exports a module once, so that every program reads the same file.
"""

import itertools
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = {"f32": 1e-3}
VOCABULARY = 30522
SWEEPS: dict[str, list[dict[str, int]]] = {
    "minilm": [{"b": b, "n": n} for b, n in ((1, 16), (1, 128), (8, 64), (32, 128))],
    "gpt2": [{"b": b, "n": n} for b, n in ((1, 16), (1, 128), (4, 64))],
    "vit_tiny": [{"b": b} for b in (1, 4, 16)],
    "resnet18": [{"b": b} for b in (1, 4, 16)],
}


def cases(model: str, sizes: list[dict[str, int]] | None = None) -> list[dict]:
    """The cases of a model, or of a file."""
    wanted = SWEEPS[model] if sizes is None else sizes
    return [{"model": model, "dtype": "f32", "sizes": each} for each in wanted]


def label(case: Mapping[str, Any]) -> str:
    """A case as text for a table."""
    return f"{Path(case['model']).name} {'x'.join(map(str, case['sizes'].values()))}"


def is_file(case: Mapping[str, Any]) -> bool:
    """Whether the model is an ONNX file."""
    return case["model"].endswith(".onnx")


def arguments(case: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The inputs, the same for every program."""
    generator = np.random.default_rng(7)
    if is_file(case):
        return _of_file(case, generator)
    b = case["sizes"]["b"]
    if case["model"] in ("minilm", "gpt2"):
        return {"x": generator.integers(0, VOCABULARY, (b, case["sizes"]["n"]))}
    return {"x": generator.standard_normal((b, 3, 224, 224), np.float32)}


def _of_file(case: Mapping[str, Any], generator: np.random.Generator) -> dict[str, np.ndarray]:
    import onnx

    graph = onnx.load(case["model"], load_external_data=False).graph
    own = {each.name for each in graph.initializer}
    arrays = {}
    for each in graph.input:
        tensor = each.type.tensor_type
        dims = [
            case["sizes"].get(dim.dim_param, 1) if dim.dim_param else dim.dim_value
            for dim in tensor.shape.dim
        ]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if each.name not in own:
            is_float = dtype.kind == "f"
            made = generator.standard_normal(dims) if is_float else generator.integers(0, 2, dims)
            arrays[each.name] = np.asarray(made, dtype)
    return arrays


@cache
def module(model: str) -> Any:
    """A module of PyTorch, with weights that depend on nothing but its name."""
    import torch

    torch.manual_seed(0)
    return _MODULES[model]().eval()


def _minilm() -> Any:
    import transformers

    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        attn_implementation="eager",
    )  # fmt: skip
    return _First(transformers.BertModel(config, add_pooling_layer=False))


def _gpt2() -> Any:
    import transformers

    config = transformers.GPT2Config(use_cache=False, attn_implementation="eager")
    return _First(transformers.GPT2LMHeadModel(config), has_mask=True)


def _vit_tiny() -> Any:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=192, num_attention_heads=3, intermediate_size=768, attn_implementation="eager"
    )
    return _First(transformers.ViTModel(config, add_pooling_layer=False))


def _First(inner: Any, has_mask: bool = False) -> Any:
    """A module with the first output of another one, which sees all tokens if it takes a mask.

    Without a mask, GPT-2 looks for several texts in a row, which opset 17 cannot express.
    """
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x):
            mask = {"attention_mask": torch.ones_like(x)} if has_mask else {}
            return self.inner(x, return_dict=False, **mask)[0]

    return First()


def _resnet18() -> Any:
    from torch import nn

    def conv(inputs: int, outputs: int, size: int, stride: int) -> list[Any]:
        layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return [layer, nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            first, second = conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3, 1)
            self.body = nn.Sequential(*first, nn.ReLU(), *second)
            same = stride == 1 and inputs == outputs
            self.around = (
                nn.Identity() if same else nn.Sequential(*conv(inputs, outputs, 1, stride))
            )

        def forward(self, x):
            return (self.body(x) + self.around(x)).relu()

    widths = [64, 64, 128, 256, 512]
    layers: list[Any] = [*conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for inputs, outputs in itertools.pairwise(widths):
        layers += [Block(inputs, outputs, 1 + (inputs != outputs)), Block(outputs, outputs, 1)]

    class ResNet(nn.Sequential):
        def forward(self, x):
            return super().forward(x)

    return ResNet(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


_MODULES = {"minilm": _minilm, "gpt2": _gpt2, "vit_tiny": _vit_tiny, "resnet18": _resnet18}


def dynamic_axes(case: Mapping[str, Any]) -> dict[int, str]:
    """The axes of the input that vary."""
    return dict(enumerate(case["sizes"]))


def onnx_file(case: Mapping[str, Any]) -> Path:
    """The model as a file, exported if it is not there yet."""
    if is_file(case):
        return Path(case["model"])
    import torch

    folder = Path(os.environ.get("RELAX_BENCH_MODELS", tempfile.gettempdir())) / "relax-models"
    folder.mkdir(exist_ok=True)
    path = folder / f"{case['model']}-{torch.__version__}.onnx"
    if not path.exists():
        example = {**case, "sizes": dict.fromkeys(case["sizes"], 4)}
        given = (torch.from_numpy(arguments(example)["x"]),)
        part = path.with_suffix(f".{os.getpid()}")
        torch.onnx.export(
            module(case["model"]), given, str(part), dynamo=False, input_names=["x"],
            output_names=["y"], opset_version=17,
            dynamic_axes={"x": dynamic_axes(case), "y": {0: "b"}},
        )  # fmt: skip
        part.replace(path)
    return path


def reference(case: Mapping[str, Any]) -> np.ndarray:
    """The first output: of the module in double precision, of a file by ONNX Runtime."""
    if is_file(case):
        import onnxruntime

        session = onnxruntime.InferenceSession(case["model"], None, ["CPUExecutionProvider"])
        return session.run(None, arguments(case))[0]
    import copy

    import torch

    given = torch.from_numpy(arguments(case)["x"])
    given = given.double() if given.is_floating_point() else given
    with torch.no_grad():
        return copy.deepcopy(module(case["model"])).double()(given).numpy()
