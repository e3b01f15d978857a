"""Images of lines: files next to that of the prompts, or data in the line itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from relax_mlir.errors import UsageError
from relax_mlir.llm.vision.images import ImageSource, decode_data_url


def image_at(url: str, folder: Path) -> ImageSource:
    """An image by its URL, `data:image/...` or `file:...`, or by its path from `folder`.

    Raises UsageError for other URLs: nothing is fetched.
    """
    if url.lower().startswith("data:"):
        return decode_data_url(url)
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() != "file":
        raise UsageError(f"'{url[:60]}' is not fetched; expects a file, or data:image/...;base64,")
    return folder / (unquote(rest) if separator else url)


def with_images(
    messages: Sequence[Mapping[str, Any]], folder: Path
) -> tuple[list[dict[str, Any]], list[ImageSource]]:
    """Messages in OpenAI's form as chat templates take them, and the images of their parts.

    A content of texts alone becomes one text, by lines. Raises UsageError for other parts.
    """
    images: list[ImageSource] = []
    return [_message(message, folder, images) for message in messages], images


def _message(message: Mapping[str, Any], folder: Path, images: list[ImageSource]) -> dict[str, Any]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return dict(message)
    if not isinstance(content, list):
        raise UsageError(
            f"a message has a content {str(content)[:60]!r}; expects a text, or a list of parts"
        )
    count = len(images)
    parts = [_part(part, folder, images) for part in content]
    if len(images) > count:
        return {**message, "content": parts}
    return {**message, "content": "\n".join(part["text"] for part in parts)}


def _part(part: Any, folder: Path, images: list[ImageSource]) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    image = part.get("image_url") if kind == "image_url" else None
    if isinstance(image, dict) and isinstance(image.get("url"), str):
        images.append(image_at(image["url"], folder))
        return {"type": "image"}
    raise UsageError(
        f"a message has a part of type {str(kind)[:60]!r}; expects 'text' with 'text', or "
        "'image_url' with an object that has a 'url'"
    )
