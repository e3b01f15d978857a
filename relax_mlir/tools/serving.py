"""The command `relax-llm serve`: its options, and how a server is set up by them."""

import argparse
import ipaddress
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from relax_mlir.errors import UsageError
from relax_mlir.llm.serving.keys import KEY_VARIABLE, read_keys
from relax_mlir.tools.adapters import add_adapters
from relax_mlir.tools.cli import add_compile_options
from relax_mlir.tools.context_shift import add_context_shift, keep_of

if TYPE_CHECKING:
    from relax_mlir.llm.serving.engines import Served
    from relax_mlir.llm.serving.limits import Access
    from relax_mlir.llm.serving.loading import Loading

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
    add_adapters(parser, "requests choose by NAME as their model")
    add_compile_options(parser, opt_level=3)
    add_context_shift(parser)
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
        help="a proxy, or a network of them, whose headers say where clients are" + several,
    )


def serve(args: argparse.Namespace) -> int:
    """Serves models until a signal ends it."""
    from relax_mlir.llm.serving.limits import Limits, State
    from relax_mlir.llm.serving.loading import load_served, named_models
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
    keys = read_keys(args.api_key, args.api_key_file)
    proxies = [_network(each) for each in args.trusted_proxy]
    loading = _loading(args)
    models = named_models(args.models or [DEFAULT_MODEL], loading.adapters)
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
        served: dict[str, Served] = {}
        for name, path in models.items():  # those before one that cannot be loaded are closed
            served |= load_served(name, path, loading, sandbox)
            stack.callback(served[name].close)
        run(State(served, limits, access), listener, proxies)
    return 0


def _loading(args: argparse.Namespace) -> "Loading":
    from relax_mlir.llm.checkpoints.adapters import named_adapters
    from relax_mlir.llm.serving.loading import Loading

    return Loading(
        weights=args.weights,
        activations=args.activations,
        cache=args.cache,
        context=args.context,
        threads=args.threads,
        lora=args.lora,
        keep=keep_of(args),
        adapters=named_adapters(args.adapter),
        pages=args.pages,
        max_sequences=args.max_sequences,
        step_tokens=args.step_tokens,
        max_queue=args.max_queue,
        use_cache=not args.no_cache,
        target=args.target,
        opt_level=args.opt_level,
    )


def _positive(value: float, option: str):
    if not value > 0:
        raise UsageError(f"{option} is {value}; expects more than 0")
    return value


def _network(text: str) -> str:
    try:
        return text if text == "*" else str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise UsageError(
            f"--trusted-proxy is '{text}'; expects an address, a network as 10.0.0.0/8, or '*'"
        ) from None


def _access(args: argparse.Namespace, keys: list[str], local: bool) -> "Access":
    from relax_mlir.llm.serving.limits import LOOPBACK, Access

    extra = [host.lower() for host in args.allowed_host]
    hosts = [*LOOPBACK, args.host.lower(), *extra] if local or extra else None
    return Access(keys, hosts, args.cors_origin)
