"""What `relax-llm` does once its command line is read."""

import argparse
import json
import sys

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.llm.benchmark import Contender, Plan, Relax, measure, table
from relax_mlir.llm.checkpoint import open_checkpoint
from relax_mlir.llm.decoder import Settings
from relax_mlir.llm.generation import Generation
from relax_mlir.llm.inspection import describe
from relax_mlir.llm.model import LanguageModel, cache_type
from relax_mlir.llm.session import Session

LEAVE, RESET = "/exit", "/reset"


def generate(args: argparse.Namespace) -> int:
    """Answers one prompt: text to standard output, statistics to standard error."""
    model = _load(args, args.threads, args.context)
    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    answer = _generation(model, prompt, args, raw=args.raw)
    _stream(answer)
    print(f"{answer.statistics}, stopped by {answer.stop_reason}", file=sys.stderr)
    return 0


def chat(args: argparse.Namespace) -> int:
    """Answers line after line until the user leaves."""
    model = _load(args, args.threads, args.context)
    if model.chat is None:
        raise UsageError(f"'{args.model}' has no chat template; use relax-llm generate")
    session = model.session()
    beginning = [{"role": "system", "content": args.system}] if args.system else []
    messages = list(beginning)
    while (line := _ask()) not in (None, LEAVE):
        if line == RESET:
            messages = list(beginning)
        elif line:
            messages.append({"role": "user", "content": line})
            try:
                answer = _turn(model, messages, session, args)
                messages.append({"role": "assistant", "content": answer})
            except UsageError as error:  # the conversation has grown too long
                print(f"{error}; {RESET} starts anew", file=sys.stderr)
                messages.pop()
    return 0


def _turn(model: LanguageModel, messages: list, session: Session, args: argparse.Namespace) -> str:
    """Prints the answer to a conversation and returns it; an interrupt cuts it short."""
    answer = _generation(model, messages, args, session=session)
    pieces: list[str] = []
    try:
        _stream(answer, pieces)
    except KeyboardInterrupt:
        print()
    print(answer.statistics, file=sys.stderr)
    return "".join(pieces)


def _ask() -> str | None:
    """A line of the user's, None at the end of the input or when interrupted."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None


def bench(args: argparse.Namespace) -> int:
    """Prints tokens per second for each case, beside other programs if asked for."""
    plan = Plan(args.threads, args.pp, args.tg, args.context, args.rounds)
    if args.ablate:
        return _ablate(args, plan)
    model = _load(args, None, None)
    plan.check(model.context)
    if args.profile:
        return _profile(args, plan, model)
    contenders: list[Contender] = [Relax(model, plan.longest)]
    if args.vs:
        from relax_mlir.llm.peers import LlamaCpp  # llama.cpp is optional

        contenders.append(LlamaCpp(args.model, plan.longest, args.weights))
    results = measure(contenders, plan)
    print(json.dumps(results, indent=2) if args.json else table(results))
    return 0


def _ablate(args: argparse.Namespace, plan: Plan) -> int:
    """Prints what each optimisation is worth."""
    from relax_mlir.llm import ablation  # brings the compiler

    checkpoint = open_checkpoint(args.model)
    plan.check(checkpoint.config.max_context)
    cache = cache_type(args.cache, args.weights, args.activations, checkpoint)
    settings = Settings(args.weights, args.activations, args.target, args.opt_level, cache=cache)
    results = ablation.ablate(checkpoint, settings, plan)
    print(json.dumps(results, indent=2) if args.json else ablation.table(results))
    return 0


def _profile(args: argparse.Namespace, plan: Plan, model: LanguageModel) -> int:
    """Prints the kernels that take longest in each case, and writes them all to a trace."""
    from relax_mlir.llm.profiling import profile_cases
    from relax_mlir.machine.measure import this_machine  # brings the compiler
    from relax_mlir.profile import table, trace, write_trace

    machine = this_machine(args.refresh_machine)
    found = profile_cases(model, list(plan.cases()), plan.longest, plan.rounds)
    write_trace(args.profile, found, machine)
    if args.json:
        print(json.dumps(trace(found, machine), indent=2))
        return 0
    print("\n\n".join(table(each, machine.at(each.threads)) for each in found))
    print(f"of roof: measured bandwidth and arithmetic of {machine.processor}", file=sys.stderr)
    return 0


def inspect(args: argparse.Namespace) -> int:
    """Prints what a model consists of and what it is compiled to."""
    print(describe(_load(args, None, None)))
    return 0


def _load(args: argparse.Namespace, threads: int | None, context: int | None) -> LanguageModel:
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
    )


def _generation(
    model: LanguageModel,
    prompt: str | list,
    args: argparse.Namespace,
    raw: bool = False,
    session: Session | None = None,
) -> Generation:
    return model.generate(
        prompt,
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        repetition_penalty=args.repetition_penalty,
        seed=args.seed,
        raw=raw,
        session=session,
    )


def _stream(answer: Generation, pieces: list[str] | None = None) -> None:
    """Prints the pieces as they come, and collects them."""
    for piece in answer:
        print(piece, end="", flush=True)
        if pieces is not None:
            pieces.append(piece)
    print()


COMMANDS = {"generate": generate, "chat": chat, "bench": bench, "inspect": inspect}
