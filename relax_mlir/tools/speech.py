"""The command `relax-llm transcribe`: its options, and what it prints."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any


def add_command(commands: Any) -> None:
    """Adds the command to others."""
    text = "Writes down the speech of a recording."
    parser = commands.add_parser("transcribe", help=text, description=text, allow_abbrev=False)
    add = parser.add_argument
    add("model", help="a Hugging Face folder with a Whisper model")
    add("audio", help="a WAVE file of integer samples, at any rate")
    add("--language", metavar="CODE", help="such as 'de' (default: the model tells it)")
    add("--translate", action="store_true", help="translate to English")
    add("--threads", type=int, metavar="N", help="default: all CPUs")
    add(
        "--weights",
        choices=["native", "f32"],
        default="native",
        help="native, the default: bfloat16 matrices stay so",
    )
    forms = parser.add_mutually_exclusive_group().add_argument
    forms("--srt", action="store_true", help="print subtitles")
    forms("--json", action="store_true", help="print language, text and parts as JSON")
    forms("--no-timestamps", action="store_true", help="decode without timestamps")


def transcribe(args: argparse.Namespace) -> int:
    """Prints the text while it is decoded, or subtitles or JSON when all of it is."""
    from relax_mlir.llm.speech.audio import read_audio
    from relax_mlir.llm.speech.model import Whisper
    from relax_mlir.llm.speech.subtitles import srt
    from relax_mlir.llm.speech.transcriber import Transcriber

    model = Whisper.load(args.model, weights=args.weights, threads=args.threads)
    sound = read_audio(Path(args.audio), model.config.features.rate)
    streams = not (args.srt or args.json)
    found = Transcriber(model).transcribe(
        sound,
        language=args.language,
        task="translate" if args.translate else "transcribe",
        timed=not args.no_timestamps,
        tell=_print if streams else lambda text: None,
    )
    if args.srt:
        sys.stdout.write(srt(found.segments))
    elif args.json:
        parts = [{**asdict(part), "tokens": list(part.tokens)} for part in found.segments]
        values = {"language": found.language, "seconds": found.seconds, "text": found.text}
        print(json.dumps({**values, "segments": parts}, ensure_ascii=False))
    else:
        print()
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
