"""`/v1/audio/transcriptions`: the texts of recordings."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.errors import refused, unknown
from relax_mlir.llm.serving.fields import check_size, check_type, shorten
from relax_mlir.llm.serving.json_text import dump
from relax_mlir.llm.speech.subtitles import srt, vtt
from relax_mlir.llm.speech.transcript import Transcript

FIELDS = ("file", "model", "language", "prompt", "response_format", "temperature")
FORMATS = ("json", "text", "srt", "vtt", "verbose_json")


async def read_form(request: Request, most_bytes: int, add: Callable[[int], None]) -> FormData:
    """The form of a request, to be closed; the sizes of its parts are given to `add`.

    Raises ApiError if it is none, or too large.
    """
    check_type(request, "multipart/form-data")
    limited = Request(request.scope, _limited(request, most_bytes, add))
    try:
        return await limited.form(max_files=1, max_fields=16)
    except HTTPException as error:  # of the parser of forms
        raise refused(f"the form is damaged: {shorten(error.detail)}") from None


def _limited(
    request: Request, most: int, add: Callable[[int], None]
) -> Callable[[], Awaitable[Message]]:
    """What receives the body, and refuses to go on once it is larger than `most`."""
    total = 0

    async def receive() -> Message:
        nonlocal total
        message = await request.receive()
        size = len(message.get("body", b""))
        total += size
        check_size(total, most)
        add(size)
        return message

    return receive


async def transcription(
    form: FormData, served_by: Callable[[str], Served], in_thread: Callable[..., Awaitable[Any]]
) -> Response:
    """The response to a form; raises ApiError, and UsageError of the model's own checks."""
    for name in form:
        if name not in FIELDS:
            raise refused(f"unknown field '{shorten(name)}'; known are {', '.join(FIELDS)}")
    texts = {name: text for name, text in form.items() if isinstance(text, str)}
    served = served_by(texts.get("model", ""))
    if served.transcriber is None:
        raise unknown(f"the model '{served.name}' has no transcriptions", "no_such_capability")
    form_of_text = texts.get("response_format", "json")
    if form_of_text not in FORMATS:
        expected = f"one of {', '.join(FORMATS)}"
        raise refused(f"'response_format' is '{shorten(form_of_text)}'; expects {expected}")
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise refused("'file' is missing; expects a recording", "file")
    audio = await file.read()
    language, prompt = texts.get("language"), texts.get("prompt")
    result = await in_thread(served.transcriber.transcribe, audio, language, prompt)
    return _response(result, form_of_text)


def _response(result: Transcript, form: str) -> Response:
    if form == "text":
        return Response(f"{result.text}\n", media_type="text/plain")
    if form == "srt":
        return Response(srt(result.segments), media_type="text/plain")
    if form == "vtt":
        return Response(vtt(result.segments), media_type="text/vtt")
    values: dict[str, Any] = {"text": result.text}
    if form == "verbose_json":
        segments = [
            {"id": index, "start": part.start, "end": part.end, "text": part.text}
            for index, part in enumerate(result.segments)
        ]
        values.update(
            task="transcribe",
            language=result.language or "en",  # models of one language are of English
            duration=result.seconds,
            segments=segments,
        )
    return Response(dump(values), media_type="application/json")
