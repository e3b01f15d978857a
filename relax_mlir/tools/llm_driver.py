"""What `relax-llm` does once its command line is read."""

import argparse
import json
import sys

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.llm.benchmark import Contender, Plan, Relax, measure, table
from relax_mlir.llm.generation import Generation
from relax_mlir.llm.inspection import describe
from relax_mlir.llm.model import LanguageModel
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
    model = _load(args, None, None)
    plan.check(model.context)
    contenders: list[Contender] = [Relax(model, plan.longest)]
    if args.vs:
        from relax_mlir.llm.peers import LlamaCpp  # llama.cpp is optional

        contenders.append(LlamaCpp(args.model, plan.longest, args.weights))
    results = measure(contenders, plan)
    print(json.dumps(results, indent=2) if args.json else table(results))
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
