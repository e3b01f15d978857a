"""The command `relax-llm serve`: its options, and how a server is set up by them."""

import argparse
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relax_mlir.errors import UsageError
from relax_mlir.tools.files import read_text

if TYPE_CHECKING:
    from relax_mlir.llm.serving.engines import Served
    from relax_mlir.llm.serving.limits import Access
    from relax_mlir.llm.serving.sandbox import Sandbox

KEY_VARIABLE = "RELAX_API_KEY"
DEFAULT_MODEL = "smollm2"


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to others; returns its parser, which lacks the options of weights."""
    text = "Serves models over HTTP, with OpenAI's interface."
    parser: argparse.ArgumentParser = commands.add_parser(
        "serve", help=text, description=text, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "models",
        nargs="*",
        metavar="MODEL",
        help="a packaged model, a GGUF file, or a Hugging Face folder (default: smollm2); "
        "NAME=MODEL gives it the name NAME",
    )
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="default: 127.0.0.1, loopback")
    add("--port", type=int, default=8000, metavar="N", help="default: 8000; 0: any that is free")
    add("--threads", type=int, metavar="N", help="threads of a model's steps (default: all CPUs)")
    add("--context", type=int, metavar="N", help="maximum length in tokens (default: the model's)")
    add("--no-cache", action="store_true", help="compile even what is in the disk cache")
    _add_limits(parser)
    _add_access(parser)
    return parser


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add("--max-sequences", type=int, default=64, metavar="N", help="run at once (default: 64)")
    add("--step-tokens", type=int, default=256, metavar="N", help="most of a step (default: 256)")
    add("--pages", type=int, metavar="N", help="pages of 16 tokens (default: by free memory)")
    add("--max-queue", type=int, default=256, metavar="N", help="requests that wait (default: 256)")
    add("--max-tokens", type=int, metavar="N", help="of an answer (default: the context)")
    add("--max-body", type=int, default=4 << 20, metavar="BYTES", help="of JSON (default: 4 MiB)")
    add("--request-timeout", type=float, default=600.0, metavar="S", help="seconds (default: 600)")
    add(
        "--drain-timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds that running requests get after SIGTERM (default: 30)",
    )


def _add_access(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("access").add_argument
    several = "; may be given several times"
    add(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help=f"clients need this key, or one of --api-key-file or the variable {KEY_VARIABLE}"
        + several,
    )
    add("--api-key-file", metavar="FILE", help="a file with a key on each line")
    add(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name of this host in requests; on loopback, only its own names are" + several,
    )
    add(
        "--cors-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="an origin such as https://chat.example whose pages may use the server" + several,
    )
    add(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a proxy whose headers say where clients are" + several,
    )


def serve(args: argparse.Namespace) -> int:
    """Serves models until a signal ends it."""
    from relax_mlir.llm.serving.limits import Limits, State
    from relax_mlir.llm.serving.sandbox import Sandbox
    from relax_mlir.llm.serving.server import bind, is_loopback, url_of
    from relax_mlir.llm.serving.server import serve as run

    limits = Limits(
        body_bytes=_positive(args.max_body, "--max-body"),
        max_tokens=1 << 31
        if args.max_tokens is None
        else _positive(args.max_tokens, "--max-tokens"),
        answer_seconds=_positive(args.request_timeout, "--request-timeout"),
        drain_seconds=max(args.drain_timeout, 0.0),
    )
    keys = _keys(args)
    models = _names(args.models or [DEFAULT_MODEL])
    listener = bind(args.host, args.port)
    local = is_loopback(listener)
    if not local and not keys:
        warnings.warn(
            f"whoever reaches {url_of(listener)} may use the models; --api-key-file asks for keys",
            stacklevel=1,
        )
    access = _access(args, keys, local)
    with ExitStack() as stack:
        stack.enter_context(listener)
        sandbox = stack.enter_context(Sandbox())
        served = {name: _load(args, name, path, sandbox, stack) for name, path in models.items()}
        run(State(served, limits, access), listener, args.trusted_proxy)
    return 0


def _load(
    args: argparse.Namespace, name: str, path: str, sandbox: "Sandbox", stack: ExitStack
) -> "Served":
    """A model with its engine, which is closed if the next one cannot be loaded; or an encoder."""
    from relax_mlir.llm.batching.engine import Engine
    from relax_mlir.llm.encoders.encoder import is_encoder_model, load_encoder
    from relax_mlir.llm.serving.engines import Served
    from relax_mlir.llm.speech.config import is_whisper

    if args.lora is not None and (is_whisper(Path(path)) or is_encoder_model(path)):
        raise UsageError(f"'{path}' generates no text: --lora takes language models")
    if is_whisper(Path(path)):
        from relax_mlir.llm.serving.speech import Recordings
        from relax_mlir.llm.speech.model import Whisper

        model = Whisper.load(path, threads=args.threads)
        return Served(name, transcriber=Recordings(model))
    if is_encoder_model(path):
        encoder = load_encoder(
            path,
            weights=args.weights,
            threads=args.threads,
            use_cache=not args.no_cache,
            activations=args.activations,
        )
        return Served(name, embedder=encoder)
    engine = Engine.load(
        path,
        weights=args.weights,
        threads=args.threads,
        pages=args.pages,
        max_sequences=args.max_sequences,
        step_tokens=args.step_tokens,
        max_waiting=args.max_queue,
        activations=args.activations,
        cache=args.cache,
        context=args.context,
        lora=args.lora,
        use_cache=not args.no_cache,
    )
    stack.callback(engine.close, drain=False)
    if engine.model.chat is not None:
        engine.model.chat = sandbox.template(engine.model.chat)
    return Served(name, engine, sandbox=sandbox)


def _positive(value: float, option: str):
    if not value > 0:
        raise UsageError(f"{option} is {value}; expects more than 0")
    return value


def _names(models: list[str]) -> dict[str, str]:
    """The models by their names: what is given, or that of the file or folder."""
    named: dict[str, str] = {}
    for model in models:
        name, equals, path = model.partition("=")
        if not equals or "/" in name:
            name, path = Path(model).name.removesuffix(".gguf"), model
        if not name or not path:
            raise UsageError(f"'{model}' is no model; expects MODEL or NAME=MODEL")
        if name in named:
            raise UsageError(f"two models have the name '{name}'; NAME=MODEL gives another one")
        named[name] = path
    return named


def _access(args: argparse.Namespace, keys: list[str], local: bool) -> "Access":
    from relax_mlir.llm.serving.limits import LOOPBACK, Access

    extra = [host.lower() for host in args.allowed_host]
    hosts = [*LOOPBACK, args.host.lower(), *extra] if local or extra else None
    return Access(keys, hosts, args.cors_origin)


def _keys(args: argparse.Namespace) -> list[str]:
    """The keys of the command line, the file and the environment."""
    keys = [*args.api_key, *os.environ.get(KEY_VARIABLE, "").split()]
    if args.api_key_file is not None:
        lines = list(_lines(read_text(args.api_key_file)))
        if not lines:
            raise UsageError(f"'{args.api_key_file}' has no key; expects one on each line")
        keys += lines
    for key in keys:
        if not (key.isascii() and key.isprintable() and " " not in key and key):
            raise UsageError("an API key is empty, or has other than visible ASCII characters")
    return keys


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())
