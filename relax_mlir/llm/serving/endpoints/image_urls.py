"""Images of messages: data in the request itself, as the server fetches nothing."""

from relax_mlir.errors import UsageError
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body
from relax_mlir.llm.vision.images import decode_data_url

MOST_IMAGES = 16
"""Of a request."""


def shows_images(body: Body) -> bool:
    """Whether messages have images, which take long to decode and encode."""
    messages = body.get("messages")
    contents = [
        message.get("content")
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
    ]
    return any(
        isinstance(part, dict) and part.get("type") == "image_url"
        for content in contents
        if isinstance(content, list)
        for part in content
    )


def image_of(part: Body) -> bytes:
    """The file in a part of the type `image_url`; raises ApiError for a URL of something else."""
    part.only(("type", "image_url"))
    outer = part.table("image_url")
    if outer is None:
        raise part.refuse("image_url", "an object with 'url'")
    outer.only(("url", "detail"))
    outer.choice("detail", ("auto", "low", "high"), "auto")
    url = outer.text("url")
    if not url.lower().startswith("data:"):
        raise refused(
            f"'{outer.path}.url' is no data URL; expects data:image/...;base64,... as the server "
            "fetches nothing",
            f"{outer.path}.url",
        )
    try:
        return decode_data_url(url)
    except UsageError:
        raise outer.refuse("url", "data:image/...;base64,... with base64 after the comma") from None
