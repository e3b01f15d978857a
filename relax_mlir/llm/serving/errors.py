"""Errors of requests, as OpenAI's error object and its status.

Source: OpenAI API reference, "Error codes".
"""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

from relax_mlir.errors import ModelError, OutOfMemoryError, RelaxError, UsageError
from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.serving.json_text import dump

TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}
"""The types of errors that clients cause, other than "invalid_request_error"."""


class ApiError(Exception):
    """A request that is refused or fails: status, message, and the field that is wrong, if any.

    `code` is for programs to read; `headers` go with the response.
    """

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    @property
    def object(self) -> dict[str, object]:
        """OpenAI's error object."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {
            "message": self.message,
            "type": TYPES.get(self.status, kind),
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}

    @property
    def response(self) -> Response:
        """The error as a whole response."""
        return Response(dump(self.object), self.status, self.headers, "application/json")


def refused(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """An error of a field of the body."""
    return ApiError(HTTPStatus.BAD_REQUEST, message, param, code)


def unknown(message: str, code: str) -> ApiError:
    """An error that there is no such model, or not for this."""
    return ApiError(HTTPStatus(404), message, "model", code)


def unavailable(message: str, code: str, seconds: int = 1) -> ApiError:
    """An error of the server as it is now: a later request may succeed."""
    retry = {"Retry-After": str(seconds)}
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, message, None, code, retry)


def as_api_error(error: RelaxError) -> ApiError:
    """The error that a client gets for one of the compiler or the engine."""
    if isinstance(error, Busy):
        retry = {"Retry-After": "1"}
        return ApiError(HTTPStatus.TOO_MANY_REQUESTS, str(error), None, "busy", retry)
    if isinstance(error, OutOfMemoryError):
        return unavailable(str(error), "out_of_memory")
    if isinstance(error, UsageError | ModelError):  # the second: what a template refuses
        return refused(str(error))
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), None, "execution_failed")
