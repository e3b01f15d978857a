"""Loads a model for batches: its texts, and a decoder with pages."""

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.batch import Batch
from relax_mlir.llm.batching.page_memory import page_bytes
from relax_mlir.llm.batching.sequence import pages_of
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder.caches import placed
from relax_mlir.llm.decoder.decoder import decoder_for
from relax_mlir.llm.generation.model import checked_context, settings_for
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.machine.limits import num_cpus

SHARE_OF_MEMORY = 4
"""Pages take a quarter of the free memory at most, unless their count is given."""


def load_batch(
    model: str,
    weights: str = "native",
    threads: int | None = None,
    pages: int | None = None,
    max_sequences: int = 1,
    activations: str = "int8",
    cache: str | None = None,
    context: int | None = None,
    use_cache: bool = True,
    lora: str | None = None,
    adapters: Mapping[str, str] = MappingProxyType({}),
    target: str = "native",
    opt_level: int = 3,
) -> tuple[TextModel, Batch]:
    """The model and its batch; see `Engine.load`."""
    if threads is not None and threads < 1:
        raise UsageError(f"threads is {threads}; expects 1 or more")
    checkpoint = open_checkpoint(model, lora, adapters)
    context = checked_context(context, checkpoint.config)
    settings = settings_for(checkpoint, weights, activations, target, opt_level, cache)
    settings = replace(settings, batched=True)
    decoder = decoder_for(checkpoint, settings, threads or num_cpus(), use_cache)
    decoder.executable.threads = threads or num_cpus()
    main = decoder.executable["main"]
    if pages is None:
        longest = pages_of(context)
        fitting = _free_bytes() // SHARE_OF_MEMORY // page_bytes(main)
        pages = min(longest * max_sequences, max(fitting, longest))
    text = TextModel(checkpoint, context, weights, use_cache, threads)
    parameters = placed(main, decoder.parameters)
    return text, Batch(main, checkpoint.config, parameters, pages, len(adapters))


def _free_bytes() -> int:
    """Memory that programs may take, by Linux's estimate."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return 1024 * int(rest.split()[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
