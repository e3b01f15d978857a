"""`/v1/audio/transcriptions`: the texts of recordings."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from relax_mlir.llm.serving.engines import Served, Transcript
from relax_mlir.llm.serving.errors import ApiError, refused, unknown
from relax_mlir.llm.serving.fields import check_size, shorten
from relax_mlir.llm.serving.json_text import dump

FIELDS = ("file", "model", "language", "prompt", "response_format", "temperature")
FORMATS = ("json", "text", "srt", "vtt", "verbose_json")


async def read_form(request: Request, most_bytes: int) -> FormData:
    """The form of a request, to be closed; raises ApiError if it is none, or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"the content type is '{shorten(kind)}'; expects multipart/form-data",
        )
    limited = Request(request.scope, _limited(request, most_bytes))
    try:
        return await limited.form(max_files=1, max_fields=16)
    except HTTPException as error:  # of the parser of forms
        raise refused(f"the form is damaged: {shorten(error.detail)}") from None


def _limited(request: Request, most: int) -> Callable[[], Awaitable[Message]]:
    """What receives the body, and refuses to go on once it is larger than `most`."""
    total = 0

    async def receive() -> Message:
        nonlocal total
        message = await request.receive()
        total += len(message.get("body", b""))
        check_size(total, most)
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
        return Response(subtitles(result, ","), media_type="text/plain")
    if form == "vtt":
        return Response(f"WEBVTT\n\n{subtitles(result, '.')}", media_type="text/vtt")
    values: dict[str, Any] = {"text": result.text}
    if form == "verbose_json":
        segments = [
            {"id": index, "start": begin, "end": end, "text": text}
            for index, (begin, end, text) in enumerate(result.segments)
        ]
        values.update(
            task="transcribe",
            language=result.language,
            duration=result.seconds,
            segments=segments,
        )
    return Response(dump(values), media_type="application/json")


def subtitles(result: Transcript, point: str) -> str:
    """The segments as subtitles; `point` separates milliseconds: a comma for SRT."""
    return "".join(
        f"{index}\n{_clock(begin, point)} --> {_clock(end, point)}\n{text.strip()}\n\n"
        for index, (begin, end, text) in enumerate(result.segments, 1)
    )


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{point}{rest % 1000:03}"
