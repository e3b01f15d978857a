"""`relax-llm`: generates text, chats, measures and inspects language models."""

import argparse
import sys
from typing import Any

from relax_mlir.tools import batch as batching
from relax_mlir.tools import serving, speech
from relax_mlir.tools.cli import add_compile_options, described, guard, integers
from relax_mlir.tools.context_shift import add_context_shift

MODEL_HELP = "a packaged model, a GGUF file, or a Hugging Face folder (default: smollm2)"


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing NumPy or MLIR, so that `--help` is quick."""
    parser = described(
        "Runs language models that relax-mlir compiles for this machine.",
        "relax-llm",
        "Exit status: 0 success, 1 the model is damaged or cannot run, 2 wrong usage.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, of: Any = commands) -> argparse.ArgumentParser:
        added = of.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.add_argument("model", nargs="?", default="smollm2", help=MODEL_HELP)
        return added

    generate = command("generate", "Answers a prompt; the text goes to standard output.")
    _add_prompt(generate)
    chat = command("chat", "Runs a conversation: /help lists the commands.")
    for parser_ in (generate, chat):
        _add_sampling(parser_)
        _add_penalties(parser_)
        _add_drafts_and_grammars(parser_)
        add_context_shift(parser_)
    batch = command("batch", "Answers the prompts of a file; resumes where it stopped.")
    batching.add_options(batch)
    _add_sampling(batch)
    _add_penalties(batch)
    bench = command("bench", "Measures tokens per second.")
    _add_bench(bench)
    inspect = command("inspect", "Prints the parts of a model and its compiled code.")
    export = command(
        "export-web", "Writes a folder that browsers and Node run: model, page, loader."
    )
    export.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where to write it")
    export.add_argument(
        "--context", type=int, metavar="N", help="maximum length in tokens (default: the model's)"
    )
    _add_convert(command("convert", "Writes a model as a GGUF file, which llama.cpp reads too."))
    embed = _add_embed(commands)
    server = serving.add_command(commands)
    speech.add_command(commands)
    text = "Measures how well a model predicts a text."
    evaluations = commands.add_parser("eval", help=text, description=text).add_subparsers(
        dest="command", required=True, metavar="MEASURE"
    )
    perplexity = command("perplexity", "Prints the perplexity of a text.", evaluations)
    compare = command(
        "compare", "Compares the predictions of a model with those of another one.", evaluations
    )
    compare.add_argument("other", help="the reference: a model, run with f32 weights")
    for parser_ in (perplexity, compare):
        parser_.add_argument("file", help="a file of text")
        parser_.add_argument(
            "--window", type=int, default=512, metavar="N", help="tokens it sees (default: 512)"
        )
        parser_.add_argument("--json", action="store_true", help="print JSON")
    decoders = (generate, chat, batch, bench, inspect, export, perplexity, compare)
    for parser_ in (*decoders, embed):
        add_compile_options(parser_, opt_level=3)
    for parser_ in (*decoders, embed, server):
        _add_weights(parser_)
    for parser_ in (*decoders, server):
        _add_cache(parser_)
        _add_adapter(parser_)
    return parser


def _add_prompt(generate: argparse.ArgumentParser) -> None:
    add = generate.add_argument
    add("prompt", help="the prompt; '-' reads standard input")
    add("--raw", action="store_true", help="continue the text: no chat template")
    add("--json", action="store_true", help="print text, stop reason and times as JSON")
    add("--samples", type=int, default=1, metavar="N", help="write N answers; the prompt runs once")
    add("--beams", type=int, metavar="N", help="write the best answer of a search with N beams")
    add("--length-penalty", type=float, default=1.0, metavar="X", help="of beams; default: 1")
    add(
        "--early-stopping",
        choices=["yes", "no", "never"],
        default="no",
        help="end a search once N beams are finished, once none is better (default), or can be",
    )
    add(
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="an image that the prompt is on; may be given several times",
    )


def _add_bench(bench: argparse.ArgumentParser) -> None:
    add = bench.add_argument
    add("--threads", type=integers, default=[1, 2], metavar="N,...", help="default: 1,2")
    add("--pp", type=integers, default=[128, 512], metavar="N,...", help="lengths of prompts")
    add("--tg", type=int, default=64, metavar="N", help="tokens to generate (default: 64)")
    add("--context", type=integers, default=[0, 512], metavar="N,...", help="tokens before those")
    add("--rounds", type=int, default=5, metavar="N", help="repetitions of each (default: 5)")
    add("--json", action="store_true", help="print JSON")
    kinds = bench.add_mutually_exclusive_group()
    choose = kinds.add_argument
    choose("--vs", choices=["llama.cpp"], action="append", default=[], help="measure it too")
    choose("--ablate", action="store_true", help="measure without each optimisation in turn")
    choose(
        "--profile", metavar="FILE", help="print where the time goes; write a trace for Perfetto"
    )
    add("--refresh-machine", action="store_true", help="measure the machine again to profile")


def _add_convert(convert: argparse.ArgumentParser) -> None:
    add = convert.add_argument
    add("-o", "--output", required=True, metavar="FILE", help="where to write it")
    add(
        "--weights",
        default="native",
        metavar="TYPE",
        help="native, the default: matrices keep their format; or f32, f16, bf16, q8_0, q4_0, "
        "q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k or q6_k: they are rounded to it",
    )
    add("--calibrate", metavar="FILE", help="round for what matrices are multiplied with in a text")
    add(
        "--rounding",
        choices=["importance", "gptq"],
        help="weigh each value by its input (default), or let later columns make up for earlier",
    )
    add("--window", type=int, default=512, metavar="N", help="tokens it sees (default: 512)")


def _add_embed(commands: Any) -> argparse.ArgumentParser:
    text = "Prints the vector of each text as a line of JSON."
    parser: argparse.ArgumentParser = commands.add_parser(
        "embed", help=text, description=text, allow_abbrev=False
    )
    add = parser.add_argument
    add("model", help="a packaged encoder (minilm), or a Hugging Face folder of one")
    add("texts", nargs="+", metavar="TEXT", help="'-': each line of standard input")
    add("--prompt", metavar="NAME", help="the text of the model that comes before each")
    add("--truncate", action="store_true", help="cut texts that are too long")
    add("--threads", type=int, metavar="N", help="threads of a call (default: all CPUs)")
    return parser


def _add_weights(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--weights",
        default="native",
        metavar="TYPE",
        help="native, the default: matrices keep the format of the file; f32; bf16, q8_0, q4_0 or "
        "q4_1 (also called q8_32, q4_32, q4_32_minimum): they are rounded to it",
    )
    add(
        "--activations",
        default="int8",
        metavar="TYPE",
        help="type of activations that are multiplied with quantised and bf16 matrices: int8, the "
        "default (bf16 for bf16 ones), or f32",
    )


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        metavar="TYPE",
        help="type of the key and value caches: f32, bf16 or int8 (default: f32 if matrices or "
        "activations are, else bf16)",
    )


def _add_adapter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lora", metavar="FOLDER", help="add the LoRA adapter in a folder of PEFT to the weights"
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--system", metavar="TEXT", help="the system message")
    add("--quiet", action="store_true", help="print nothing but the text: no times, no warnings")
    add(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="end an answer before this text; may be given several times",
    )
    add("--max-tokens", type=int, default=256, metavar="N", help="maximum length of an answer")
    add("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    add("--top-k", type=int, default=0, metavar="K", help="keep the K most probable tokens; 0: all")
    add(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="keep the most probable tokens up to total probability P",
    )
    add(
        "--min-p",
        type=float,
        default=0.0,
        metavar="P",
        help="keep tokens of at least P times the largest probability; 0: all",
    )
    add(
        "--typical-p",
        type=float,
        default=1.0,
        metavar="P",
        help="keep the most typical tokens up to total probability P",
    )
    add(
        "--xtc-probability",
        type=float,
        default=0.0,
        metavar="P",
        help="how often all but the least of the probable tokens are excluded; 0: never",
    )
    add(
        "--xtc-threshold",
        type=float,
        default=0.1,
        metavar="P",
        help="the least probability of those (default: 0.1)",
    )
    add("--seed", type=int, metavar="N", help="makes the draws repeatable")
    add("--threads", type=int, metavar="N", help="default: all CPUs")
    add("--context", type=int, metavar="N", help="maximum length in tokens (default: the model's)")


def _add_penalties(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--repetition-penalty", type=float, default=1.0, metavar="X", help="1, the default: none")
    for name, which in (("presence", "present"), ("frequency", "present, for each occurrence")):
        add(
            f"--{name}-penalty",
            type=float,
            default=0.0,
            metavar="X",
            help=f"subtract X from logits of tokens {which} in the answer; 0, the default: none",
        )
    add(
        "--dry-multiplier",
        type=float,
        default=0.0,
        metavar="X",
        help="penalty of tokens that make a repeated sequence longer; 0, the default: none",
    )
    add(
        "--dry-base",
        type=float,
        default=1.75,
        metavar="X",
        help="its growth for each token of the sequence (default: 1.75)",
    )
    add(
        "--dry-allowed-length",
        type=int,
        default=2,
        metavar="N",
        help="the length from which on sequences are penalised (default: 2)",
    )
    add(
        "--logit-bias",
        action=Biases,
        default={},
        metavar="ID=X",
        help="add X to the logit of a token, -inf forbids it; may be given several times",
    )


def _add_drafts_and_grammars(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    drafts = parser.add_mutually_exclusive_group().add_argument
    drafts("--draft", metavar="MODEL", help="a smaller model that guesses tokens; same answers")
    drafts("--lookup", action="store_true", help="guess tokens from what was said; same answers")
    add("--draft-tokens", type=int, metavar="N", help="guesses per run (default: 4, or 8)")
    grammars = parser.add_mutually_exclusive_group().add_argument
    grammars("--grammar", metavar="FILE", help="answer with a text of this grammar, in GBNF")
    grammars("--json-schema", metavar="FILE", help="answer with JSON of this schema")


class Biases(argparse.Action):
    """Collects ID=X as a mapping from ids to numbers."""

    def __call__(  # noqa: D102
        self, parser: Any, namespace: Any, text: Any, option: Any = None
    ) -> None:
        id, separator, bias = text.partition("=")
        try:
            entry = {int(id): float(bias)}
        except ValueError:
            entry = {}
        if not (separator and entry):
            parser.error(f"argument {option}: expects ID=X, such as 42=-inf, but got '{text}'")
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), **entry})


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    args = arguments().parse_args(argv)

    def body() -> int:
        # NumPy and MLIR take 0.4 s to import, so they wait until the command line is right.
        from relax_mlir.tools import llm_driver

        return llm_driver.COMMANDS[args.command](args)

    return guard("relax-llm", body)


if __name__ == "__main__":
    sys.exit(main())
