"""Images of messages: data in the request itself, as the server fetches nothing."""

import base64
import binascii

from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

MOST_IMAGES = 16
"""Of a request."""


def image_of(part: Body) -> bytes:
    """The file in a part of the type `image_url`; raises ApiError for a URL of something else."""
    part.only(("type", "image_url"))
    outer = part.table("image_url")
    if outer is None:
        raise part.refuse("image_url", "an object with 'url'")
    outer.only(("url", "detail"))
    outer.choice("detail", ("auto", "low", "high"), "auto")
    scheme, _, rest = outer.text("url").partition(":")
    if scheme.lower() != "data":
        raise refused(
            f"'{outer.path}.url' is no data URL; expects data:image/...;base64,... as the server "
            "fetches nothing",
            f"{outer.path}.url",
        )
    kind, _, data = rest.partition(",")
    if not kind.startswith("image/") or not kind.endswith(";base64"):
        raise outer.refuse("url", "data:image/...;base64,...")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise outer.refuse("url", "base64 after the comma") from None
