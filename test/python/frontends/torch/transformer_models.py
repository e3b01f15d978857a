"""Twenty models of `transformers`, tiny and of random weights, against PyTorch at three sizes.

    python test/python/frontends/torch/transformer_models.py [--torch-compile] [NAME ...]

A line for each: seconds of the import and the compilation, and the greatest error relative to the
greatest element. `test_transformer_models.py` runs them as tests where `transformers` is installed.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from torch._dynamo.utils import counters

import relax_mlir
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.testing.imported import interpreted

TOLERANCE = 1e-4
SIZES = ((2, 7), (3, 5), (4, 12))
TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
IMAGES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
TWO = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 99,
}
GROUPED = {"num_key_value_heads": 2}


class Model(torch.nn.Module):
    """A model whose inputs are positional, and whose result is its first tensor."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """The first result."""
        named = dict(zip(self.names, values, strict=True))
        results = self.model(**named, return_dict=True).values()
        return next(each for each in results if isinstance(each, torch.Tensor))


@dataclass(frozen=True)
class Case:
    """A model, its inputs for a batch and a length, and the axes of inputs that vary."""

    model: Model
    inputs: Callable[[int, int], tuple[torch.Tensor, ...]]
    axes: tuple[tuple[int, ...], ...]


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, 90, (batch, length))


def _seven(batch: int, length: int) -> torch.Tensor:
    return _ids(batch, 7)


def _mask(batch: int, length: int) -> torch.Tensor:
    ends = torch.arange(batch) % length
    return (torch.arange(length) < (length - ends)[:, None]).long()


def _case(
    config: str, model: str, inputs: dict[str, Any], axes: Sequence[Sequence[int]], **settings: Any
) -> Case:
    made = getattr(transformers, config)(**settings)
    made.use_cache = False
    own = Model(getattr(transformers, model)(made).eval(), list(inputs))

    def values(batch: int, length: int) -> tuple[torch.Tensor, ...]:
        return tuple(make(batch, length) for make in inputs.values())

    return Case(own, values, tuple(map(tuple, axes)))


def _text(config: str, model: str, **settings: Any) -> Case:
    inputs = {"input_ids": _ids, "attention_mask": _mask}
    return _case(config, model, inputs, [(0, 1), (0, 1)], **{**TEXT, **settings})


def _image(config: str, model: str, axes: Sequence[int] = (0,), **settings: Any) -> Case:
    def pixels(batch: int, length: int) -> torch.Tensor:
        # Dynamo takes sizes that are equal in the first call for one.
        height, width = (32 * (length // 4 + 1), 96) if len(axes) > 1 else (32, 32)
        return torch.randn(batch, 3, height, width)

    return _case(config, model, {"pixel_values": pixels}, [axes], **settings)


def _pair(config: str, model: str, **settings: Any) -> Case:
    inputs = {"input_ids": _ids, "decoder_input_ids": lambda b, n: _ids(b, n + 2)}
    return _case(config, model, inputs, [(0, 1), (0, 1)], **settings)


def _whisper() -> Case:
    inputs = {"input_features": lambda b, n: torch.randn(b, 8, 40), "decoder_input_ids": _ids}
    settings = {"max_source_positions": 20, "max_target_positions": 64, "num_mel_bins": 8}
    tokens = {f"{name}_token_id": i for i, name in enumerate(("pad", "bos", "eos"))}
    more = {"decoder_start_token_id": 1, **tokens, **settings}
    return _case("WhisperConfig", "WhisperModel", inputs, [(0,), (0, 1)], **TWO, **more)


def _wav2vec2() -> Case:
    settings = {
        "conv_dim": (16, 16),
        "conv_kernel": (4, 3),
        "conv_stride": (2, 2),
        "num_feat_extract_layers": 2,
        "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 2,
    }
    inputs = {"input_values": lambda b, n: torch.randn(b, n * 40)}
    return _case("Wav2Vec2Config", "Wav2Vec2Model", inputs, [(0, 1)], **TEXT, **settings)


def _detr() -> Case:
    backbone = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        out_features=["stage2"],
        layer_type="basic",
    )
    settings = {"num_queries": 6, "use_timm_backbone": False, "backbone_config": backbone}
    own = {key: value for key, value in TWO.items() if key != "vocab_size"}
    return _image("DetrConfig", "DetrForObjectDetection", (0, 2), backbone=None, **own, **settings)


def _llava() -> Case:
    vision = transformers.CLIPVisionConfig(**IMAGES)
    text = transformers.LlamaConfig(**TEXT, **GROUPED)
    patches, images = 16, 2  # PyTorch exports it for the images of the example

    def ids(batch: int, length: int) -> torch.Tensor:
        return torch.cat([torch.full((images, patches), 98), _ids(images, length)], 1)

    inputs = {"input_ids": ids, "pixel_values": lambda b, n: torch.randn(images, 3, 32, 32)}
    settings = {"vision_config": vision, "text_config": text, "image_token_index": 98}
    return _case("LlavaConfig", "LlavaForConditionalGeneration", inputs, [(1,), ()], **settings)


T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99}
SEGFORMER = {
    "hidden_sizes": [8, 16, 16, 32],
    "num_attention_heads": [1, 2, 2, 4],
    "depths": [1, 1, 1, 1],
    "decoder_hidden_size": 16,
}
MAMBA = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 99, "state_size": 4}
DISTILBERT = {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 64}
GPT2 = {"n_embd": 32, "n_head": 4, "n_layer": 2}

MODELS: dict[str, Callable[[], Case]] = {
    "bert": lambda: _text("BertConfig", "BertModel"),
    "distilbert": lambda: _text("DistilBertConfig", "DistilBertModel", **DISTILBERT),
    "roberta": lambda: _text("RobertaConfig", "RobertaModel"),
    "t5": lambda: _pair("T5Config", "T5ForConditionalGeneration", **T5),
    "bart": lambda: _pair("BartConfig", "BartModel", max_position_embeddings=64, **TWO),
    "gpt2": lambda: _text("GPT2Config", "GPT2LMHeadModel", **GPT2),
    "llama": lambda: _text("LlamaConfig", "LlamaForCausalLM", **GROUPED),
    "mistral": lambda: _text("MistralConfig", "MistralForCausalLM", sliding_window=4, **GROUPED),
    "qwen2": lambda: _text("Qwen2Config", "Qwen2ForCausalLM", **GROUPED),
    "gemma": lambda: _text("GemmaConfig", "GemmaForCausalLM", head_dim=8, **GROUPED),
    "phi": lambda: _text("PhiConfig", "PhiForCausalLM"),
    "vit": lambda: _image("ViTConfig", "ViTModel", **IMAGES),
    "clip": lambda: _image("CLIPVisionConfig", "CLIPVisionModel", **IMAGES),
    "whisper": _whisper,
    "segformer": lambda: _image(
        "SegformerConfig", "SegformerForSemanticSegmentation", (0, 2), **SEGFORMER
    ),
    "detr": _detr,
    "mamba": lambda: _case(
        "MambaConfig", "MambaForCausalLM", {"input_ids": _seven}, [(0,)], **MAMBA
    ),
    "wav2vec2": _wav2vec2,
    "mixtral": lambda: _text("MixtralConfig", "MixtralForCausalLM", num_local_experts=4, **GROUPED),
    "llava": _llava,
}


def exported(case: Case) -> torch.export.ExportedProgram:
    """The program of a model, of which batch and length vary."""
    dims = tuple({axis: torch.export.Dim.AUTO for axis in own} for own in case.axes)
    example = case.inputs(*SIZES[0])
    return torch.export.export(case.model, example, dynamic_shapes={"values": dims})


def error(got: np.ndarray, wanted: torch.Tensor) -> float:
    """The greatest difference, relative to the greatest element."""
    expected = wanted.numpy()
    assert got.shape == expected.shape, (got.shape, expected.shape)
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def by_export(name: str, interprets: bool = False) -> list[float]:
    """The errors of a model that is exported and compiled, at each size."""
    case = _seeded(name)
    imported = from_exported_program(exported(case))
    main = interpreted(imported) if interprets else relax_mlir.compile(imported)["main"]
    errors = []
    for size in SIZES:
        values = case.inputs(*size)
        with torch.no_grad():
            wanted = case.model(*values)
        errors.append(error(main(*(value.numpy() for value in values)), wanted))
    return errors


def by_torch_compile(name: str) -> list[float]:
    """The errors of a model under `torch.compile`; all of it is one graph, which we compile.

    It was called before, since models install hooks under a lock then, which Dynamo cannot take;
    what they check of data are scalars of the graph.
    """
    case = _seeded(name)
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(case.model, backend="relax", dynamic=True, fullgraph=True)
    errors = []
    scalars = torch._dynamo.config.patch(capture_scalar_outputs=True)
    with torch.no_grad(), warnings.catch_warnings(), scalars:
        warnings.filterwarnings("error", "PyTorch runs a graph")
        for size in SIZES:
            values = case.inputs(*size)
            wanted = case.model(*values)
            errors.append(error(compiled(*values).numpy(), wanted))
    assert counters["stats"]["unique_graphs"] == 1
    return errors


def _seeded(name: str) -> Case:
    torch.manual_seed(0)
    return MODELS[name]()


def main() -> int:
    """Prints a line for each model; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--interpret", action="store_true")
    given = parser.parse_args()
    failures = 0
    for name in given.names:
        start = time.perf_counter()
        try:
            errors = (
                by_torch_compile(name) if given.torch_compile else by_export(name, given.interpret)
            )
        except Exception as failure:
            failures += 1
            print(f"{name:12} failed: {type(failure).__name__}: {str(failure)[:1000]}", flush=True)
            continue
        failures += max(errors) > TOLERANCE
        seconds = time.perf_counter() - start
        print(f"{name:12} {seconds:6.1f} s", *(f"{each:.1e}" for each in errors), flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
