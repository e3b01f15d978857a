"""The implementation of `relax-llm`, after its command line is parsed."""

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.generation.beams import EarlyStopping
from relax_mlir.llm.generation.drafts import Draft, DraftModel, PromptLookup
from relax_mlir.llm.generation.generation import Generation
from relax_mlir.llm.generation.model import LanguageModel, checked_context, settings_for
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.measurement import quality
from relax_mlir.llm.measurement.benchmark import Contender, Plan, Relax, measure, table
from relax_mlir.llm.measurement.inspection import describe
from relax_mlir.llm.tokenization.chat import Message
from relax_mlir.llm.tokenization.content import asked_of
from relax_mlir.tools.batch import batch
from relax_mlir.tools.chat import Chat, stream
from relax_mlir.tools.context_shift import keep_of
from relax_mlir.tools.files import read_text
from relax_mlir.tools.serving import serve
from relax_mlir.tools.speech import transcribe

SAMPLING = (
    "max_tokens",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "xtc_probability",
    "xtc_threshold",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "logit_bias",
    "seed",
)
WEB_TARGET = "wasm32"


def generate(args: argparse.Namespace) -> int:
    """Answers one prompt: text to standard output, statistics to standard error."""
    if args.system is not None and args.raw:
        raise UsageError("--system and --raw exclude each other")
    model = _load(args, args.threads, args.context)
    if args.system is not None and model.chat is None:
        raise UsageError(f"'{args.model}' has no chat template, and takes no --system")
    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    if args.beams is not None:
        return _search(args, model, prompt)
    messages: list[Message] = [asked_of(prompt, len(args.image))]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    answers = model.samples(
        prompt if args.system is None else messages,
        args.samples,
        raw=args.raw,
        images=args.image,
        **sampling(args, model),
    )
    if args.json:
        results = [_as_json(answer) for answer in answers]
        print(json.dumps(results if args.samples > 1 else results[0], indent=2))
        return 0
    for answer in answers:
        stream(answer)
        if not args.quiet:
            print(f"{answer.statistics}, stopped by {answer.stop_reason}", file=sys.stderr)
    return 0


def _search(args: argparse.Namespace, model: LanguageModel, prompt: str) -> int:
    """Prints the best answer of a beam search, or all of them as JSON."""
    others = {name: value for name, value in sampling(args, model).items() if name != "max_tokens"}
    unset = dict.fromkeys(("draft", "grammar", "json_schema", "keep"))
    plain = {**asdict(Sampler()), **unset, "stop": []}
    given = [name for name, value in others.items() if value != plain[name]]
    given += [name for name in ("samples", "image") if getattr(args, name) not in (1, [])]
    if given:
        raise UsageError(f"--beams excludes --{given[0].replace('_', '-')}")
    system: Message = {"role": "system", "content": args.system or ""}
    early: dict[str, EarlyStopping] = {"yes": True, "no": False, "never": "never"}
    beams = model.beams(
        prompt if args.system is None else [system, {"role": "user", "content": prompt}],
        args.beams,
        max_tokens=args.max_tokens,
        raw=args.raw,
        length_penalty=args.length_penalty,
        early_stopping=early[args.early_stopping],
    )
    ends = model.config.eos_ids
    texts = [model.tokenizer.decode([i for i in beam.tokens if i not in ends]) for beam in beams]
    if args.json:
        results = [{"text": text, **asdict(beam)} for text, beam in zip(texts, beams)]
        print(json.dumps(results, indent=2))
    else:
        print(texts[0])
    return 0


def _as_json(answer: Generation) -> dict:
    text = "".join(answer)
    statistics_ = answer.statistics
    rates = {"prompt_rate": statistics_.prompt_rate, "generation_rate": statistics_.generation_rate}
    statistics = {**asdict(statistics_), **rates, "peak_bytes": statistics_.peak_bytes}
    reason = answer.stop_reason
    return {
        "text": text,
        "tokens": answer.tokens,
        "stop_reason": reason,
        "statistics": statistics,
    }


def chat(args: argparse.Namespace) -> int:
    """Answers line by line until the user exits."""
    model = _load(args, args.threads, args.context)
    if model.chat is None:
        raise UsageError(f"'{args.model}' has no chat template; use relax-llm generate")
    options = sampling(args, model)
    # Wrong options end the command, instead of each answer.
    model.generate("a", raw=True, **{**options, "max_tokens": 0})
    return Chat(model, args.system, options, args.quiet).run()


def bench(args: argparse.Namespace) -> int:
    """Prints tokens per second for each case, with other programs if requested."""
    plan = Plan(args.threads, args.pp, args.tg, args.context, args.rounds)
    if args.ablate:
        return _ablate(args, plan)
    model = _load(args, None, None)
    plan.check(model.context)
    if args.profile:
        return _profile(args, plan, model)
    contenders: list[Contender] = [Relax(model, plan.longest)]
    if args.vs:
        if args.lora is not None:
            raise UsageError("--vs measures another engine without adapters; it excludes --lora")
        from relax_mlir.llm.measurement.peers import LlamaCpp  # llama.cpp is optional

        contenders.append(LlamaCpp(args.model, plan.longest, args.weights))
    results = measure(contenders, plan)
    print(json.dumps(results, indent=2) if args.json else table(results))
    return 0


def _ablate(args: argparse.Namespace, plan: Plan) -> int:
    """Prints the effect of each optimisation."""
    from relax_mlir.llm.measurement import ablation  # imports the compiler

    checkpoint = open_checkpoint(args.model, args.lora)
    plan.check(checkpoint.config.max_context)
    settings = settings_for(
        checkpoint, args.weights, args.activations, args.target, args.opt_level, args.cache
    )
    results = ablation.ablate(checkpoint, settings, plan)
    print(json.dumps(results, indent=2) if args.json else ablation.table(results))
    return 0


def _profile(args: argparse.Namespace, plan: Plan, model: LanguageModel) -> int:
    """Prints the slowest kernels of each case, and writes all of them to a trace."""
    from relax_mlir.llm.measurement.profiling import profile_cases
    from relax_mlir.machine.measure import this_machine  # imports the compiler
    from relax_mlir.profile import table, trace, write_trace

    machine = this_machine(args.refresh_machine)
    profiles = profile_cases(model, list(plan.cases()), plan.longest, plan.rounds)
    write_trace(args.profile, profiles, machine)
    if args.json:
        print(json.dumps(trace(profiles, machine), indent=2))
        return 0
    print("\n\n".join(table(each, machine.at(each.threads)) for each in profiles))
    print(f"of roof: measured bandwidth and arithmetic of {machine.processor}", file=sys.stderr)
    return 0


def embed(args: argparse.Namespace) -> int:
    """Prints a line of JSON for each text."""
    from relax_mlir.llm.encoders.encoder import load_encoder  # imports the compiler

    texts = list(args.texts)
    if "-" in texts:
        lines = sys.stdin.read().splitlines()
        texts = [line for text in texts for line in (lines if text == "-" else [text])]
    encoder = load_encoder(
        args.model,
        args.weights,
        args.threads,
        args.target,
        args.opt_level,
        not args.no_cache,
        args.activations,
    )
    vectors, _ = encoder.embed(texts, prompt=args.prompt, truncate=args.truncate)
    for vector in vectors:
        print(json.dumps([float(str(x)) for x in vector]))  # the shortest digits
    return 0


def inspect(args: argparse.Namespace) -> int:
    """Prints the parts of a model and its compiled code."""
    print(describe(_load(args, None, None)))
    return 0


def _load(args: argparse.Namespace, threads: int | None, context: int | None) -> LanguageModel:
    if getattr(args, "quiet", False):
        warnings.simplefilter("ignore")  # until `cli.guard` restores it
    if threads is not None and threads < 1:
        raise UsageError(f"--threads is {threads}; expects 1 or more")
    return llm.load(
        args.model,
        weights=args.weights,
        threads=threads,
        target=args.target,
        opt_level=args.opt_level,
        context=context,
        use_cache=not args.no_cache,
        activations=args.activations,
        cache=args.cache,
        lora=args.lora,
    )


def sampling(args: argparse.Namespace, model: LanguageModel) -> dict[str, Any]:
    """The options of sampling, drafts, grammars and stopping, for `LanguageModel.generate`."""
    return {
        **{name: getattr(args, name) for name in SAMPLING},
        "draft": _draft(args, model),
        "keep": keep_of(args),
        "grammar": None if args.grammar is None else read_text(args.grammar),
        "json_schema": None if args.json_schema is None else read_text(args.json_schema),
    }


def _draft(args: argparse.Namespace, model: LanguageModel) -> Draft | None:
    count = {} if args.draft_tokens is None else {"count": args.draft_tokens}
    if args.lookup:
        return PromptLookup(**count)
    if args.draft is None:
        if count:
            raise UsageError("--draft-tokens needs --draft or --lookup")
        return None
    draft = llm.load(args.draft, threads=args.threads, use_cache=not args.no_cache)
    return DraftModel(draft.session(), draft.tokenizer, model.tokenizer, **count)


def perplexity(args: argparse.Namespace) -> int:
    """Prints the perplexity of a text."""
    text = read_text(args.file)
    _print_quality(args, quality.perplexity(_load(args, None, None), text, args.window))
    return 0


def compare(args: argparse.Namespace) -> int:
    """Prints how far the predictions of a model are from those of another one."""
    text = read_text(args.file)
    other = llm.load(args.other, weights="f32", use_cache=not args.no_cache)
    _print_quality(args, quality.compare(_load(args, None, None), other, text, args.window))
    return 0


def _print_quality(
    args: argparse.Namespace, result: quality.Perplexity | quality.Comparison
) -> None:
    print(json.dumps(quality.as_json(result), indent=2) if args.json else result)


def export(args: argparse.Namespace) -> int:
    """Writes a model as a folder of files for the web, and lists them."""
    from relax_mlir.llm.web.export import export_web  # imports the compiler

    checkpoint = open_checkpoint(args.model, args.lora)
    context = checked_context(args.context, checkpoint.config)
    target = WEB_TARGET if args.target == "native" else args.target
    settings = settings_for(
        checkpoint, args.weights, args.activations, target, args.opt_level, args.cache
    )
    for path in export_web(checkpoint, settings, Path(args.output), context):
        print(f"{path} ({path.stat().st_size} bytes)")
    return 0


def to_gguf(args: argparse.Namespace) -> int:
    """Writes a model as a GGUF file."""
    from relax_mlir.llm.checkpoints.convert import check_rounded, convert  # imports the writer

    target, calibration = Path(args.output), None
    if args.calibrate is not None:
        from relax_mlir.llm.calibration.calibration import Calibration  # imports the compiler

        check_rounded(args.weights)
        text = read_text(args.calibrate)
        checkpoint = open_checkpoint(args.model)
        calibration = Calibration(checkpoint, text, args.rounding or "importance", args.window)
    elif args.rounding is not None:
        raise UsageError("--rounding needs --calibrate FILE, a text")
    convert(args.model, target, args.weights, calibration)
    print(f"{target} ({target.stat().st_size} bytes)")
    return 0


COMMANDS = {
    "generate": generate,
    "chat": chat,
    "embed": embed,
    "bench": bench,
    "inspect": inspect,
    "export-web": export,
    "convert": to_gguf,
    "perplexity": perplexity,
    "compare": compare,
    "serve": serve,
    "batch": batch,
    "transcribe": transcribe,
}
