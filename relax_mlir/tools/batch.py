"""The command `relax-llm batch`: its options, and the run over a file of prompts."""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relax_mlir.errors import UsageError
from relax_mlir.tools.adapters import add_adapters

if TYPE_CHECKING:
    from relax_mlir.llm.offline.answering import Answers

DEFAULTS = (
    *("system", "raw", "stop", "max_tokens", "temperature", "top_k", "top_p", "min_p"),
    *("typical_p", "xtc_probability", "xtc_threshold", "repetition_penalty", "presence_penalty"),
    *("frequency_penalty", "dry_multiplier", "dry_base", "dry_allowed_length", "logit_bias"),
    "seed",
)
"""Options that a line may have too."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that other commands do not have."""
    add = parser.add_argument
    add("file", help="a line for each prompt: JSON with prompt or messages, options, and an id")
    add(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where answers are appended, a line of JSON for each; what it has is not run again",
    )
    add("--raw", action="store_true", help="continue the prompts: no chat template")
    add("--max-sequences", type=int, default=64, metavar="N", help="run at once (default: 64)")
    add("--step-tokens", type=int, default=256, metavar="N", help="most of a step (default: 256)")
    add("--pages", type=int, metavar="N", help="pages of 16 tokens (default: by free memory)")
    add_adapters(parser, "lines choose by NAME as their adapter")
    add(
        "--ray",
        metavar="ADDRESS",
        help="run on the cluster of Ray at HOST:PORT; 'auto' finds one by RAY_ADDRESS or on this "
        "machine, 'local' starts one here",
    )
    add("--workers", type=int, metavar="N", help="workers of Ray (default: one for each machine)")


def batch(args: argparse.Namespace) -> int:
    """Answers the lines of a file that the output does not have; 1 if one has an error."""
    from relax_mlir.llm.offline.answering import answer_all
    from relax_mlir.llm.offline.jobs import check_ids
    from relax_mlir.llm.offline.journal import Journal

    if args.quiet:
        warnings.simplefilter("ignore")  # until `cli.guard` restores it
    if args.workers is not None and (args.ray is None or args.workers < 1):
        raise UsageError(f"--workers is {args.workers}; expects 1 or more, with --ray")
    begin, path = time.perf_counter(), Path(args.file)
    total = check_ids(path)
    with Journal(Path(args.output)) as journal, _answers(args) as answers:
        loaded = time.perf_counter()
        count, tokens, errors = answer_all(path, total, journal, answers)
    seconds = time.perf_counter() - loaded
    if not args.quiet:
        print(
            f"load {loaded - begin:.2f} s, {count} answers, {errors} of them errors, "
            f"{tokens} tokens at {tokens / seconds:.1f}/s",
            file=sys.stderr,
        )
    return int(errors > 0)


@contextmanager
def _answers(args: argparse.Namespace) -> "Iterator[Answers]":
    """What answers jobs: an engine here, or workers of Ray."""
    from relax_mlir.llm.checkpoints.adapters import named_adapters

    options = {
        "model": args.model,
        "weights": args.weights,
        "threads": args.threads,
        "pages": args.pages,
        "max_sequences": args.max_sequences,
        "step_tokens": args.step_tokens,
        "activations": args.activations,
        "cache": args.cache,
        "context": args.context,
        "use_cache": not args.no_cache,
        "target": args.target,
        "opt_level": args.opt_level,
        "lora": args.lora,
        "adapters": named_adapters(args.adapter),
    }
    defaults: dict[str, Any] = {
        name: value for name in DEFAULTS if (value := getattr(args, name)) is not None
    }
    at_once = 2 * args.max_sequences  # prompts are ready when sequences end
    if args.ray is not None:
        from relax_mlir.llm.ray.workers import ray_answers

        with ray_answers(args.ray, args.workers, options, defaults, at_once) as answers:
            yield answers
        return
    from relax_mlir.llm.batching.engine import Engine
    from relax_mlir.llm.offline.answering import answers_of
    from relax_mlir.llm.offline.jobs import begin

    engine = Engine.load(**options)
    try:
        yield answers_of(lambda job: begin(job, engine, defaults), at_once)
    finally:
        engine.close(drain=False)
