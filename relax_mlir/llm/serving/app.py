"""The application: endpoints of OpenAI's API, health, metrics, and a page to chat."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from relax_mlir.llm.serving import metrics
from relax_mlir.llm.serving.endpoints.chat import chat_job
from relax_mlir.llm.serving.endpoints.completions import completion_job
from relax_mlir.llm.serving.endpoints.embeddings import embeddings
from relax_mlir.llm.serving.endpoints.image_urls import shows_images
from relax_mlir.llm.serving.endpoints.jobs import Job
from relax_mlir.llm.serving.endpoints.options import asks_for_grammar
from relax_mlir.llm.serving.endpoints.transcriptions import read_form, transcription
from relax_mlir.llm.serving.engines import Engine, Served
from relax_mlir.llm.serving.errors import ApiError, unknown
from relax_mlir.llm.serving.fields import Body, check_type, parsed, read_bytes, shorten
from relax_mlir.llm.serving.guards import Guard
from relax_mlir.llm.serving.json_text import dump
from relax_mlir.llm.serving.lanes import Lane
from relax_mlir.llm.serving.limits import State
from relax_mlir.llm.serving.responding import Answering, answered, unless_over

SMALL_BYTES = 1 << 16
"""A body that is parsed within a millisecond."""
Parse = Callable[[Body, Served, Any, str, int], Job]


class Endpoints:
    """The endpoints, over the state of a server."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._page, self._policy = _page()

    def routes(self) -> list[Route]:
        """A route for each."""
        post = ["POST"]
        chat, completion = (
            partial(self._generate, chat_job),
            partial(self._generate, completion_job),
        )
        return [
            Route("/", self._chat_page),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/v1/models", self._models),
            Route("/v1/models/{name:path}", self._model),
            Route("/v1/completions", completion, methods=post),
            Route("/v1/chat/completions", chat, methods=post),
            Route("/v1/embeddings", self._embeddings, methods=post),
            Route("/v1/audio/transcriptions", self._transcriptions, methods=post),
        ]

    async def _chat_page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": self._policy, "X-Content-Type-Options": "nosniff"}
        return Response(self._page, 200, headers, "text/html")

    async def _health(self, request: Request) -> Response:
        status = self._state.status
        code = 200 if status == "ok" else 503
        return Response(dump({"status": status}), code, media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        models = self._state.models.values()  # adapters are in the engine of their base
        served = {each.name: each.engine for each in models if each.base is None}
        engines = {name: engine.metrics() for name, engine in served.items() if engine is not None}
        state = self._state
        text = metrics.text(state.counters, state.running, engines)
        return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _models(self, request: Request) -> Response:
        data = [_model_object(served) for served in self._state.models.values()]
        return _json({"object": "list", "data": data})

    async def _model(self, request: Request) -> Response:
        return _json(_model_object(self._served(request.path_params["name"])))

    async def _generate(self, parse: Parse, request: Request) -> Response:
        client, most = request.scope["client_name"], self._state.limits.max_tokens
        async with self._body(request) as body:
            served = self._served(body.text("model"))
            if served.engine is None:
                raise _lacks(served, "generates no text")
            work = self._lane(body, served.engine).run(
                client, parse, body, served, served.engine, client, most
            )
            job = await self._prepared(work, request)
        return Answering(job, self._state, request.scope["begin"])

    def _lane(self, body: Body, engine: Engine) -> Lane:
        """Where a request is prepared, by what takes long in it."""
        lanes = self._state.lanes
        if engine.model.config.image_id is not None and shows_images(body):
            return lanes.models
        return lanes.grammars if asks_for_grammar(body) else lanes.short

    async def _embeddings(self, request: Request) -> Response:
        async with self._body(request) as body:
            served = self._served(body.text("model"))
        if served.embedder is None:
            raise _lacks(served, "has no embeddings")
        client, lane = request.scope["client_name"], self._state.lanes.models
        work = lane.run(client, embeddings, body, served.name, served.embedder)
        return _json(await answered(work, self._state, request.receive))

    async def _transcriptions(self, request: Request) -> Response:
        client, most = request.scope["client_name"], self._state.limits.audio_bytes
        with self._state.bodies.account(client) as add:
            form = await self._within_time(read_form(request, most, add))
            try:
                run = partial(self._state.lanes.models.run, client)
                work = transcription(form, self._served, run)
                return await answered(work, self._state, request.receive)
            finally:
                await form.close()

    def _served(self, name: str) -> Served:
        served = self._state.models.get(name)
        if served is None:
            known = ", ".join(self._state.models)
            raise unknown(
                f"there is no model '{shorten(name)}'; there are {known}", "model_not_found"
            )
        return served

    @asynccontextmanager
    async def _body(self, request: Request) -> AsyncIterator[Body]:
        """The JSON of a request, which takes too long for the event loop if it is large."""
        check_type(request, "application/json")
        client, most = request.scope["client_name"], self._state.limits.body_bytes
        with self._state.bodies.account(client) as add:
            text = await self._within_time(read_bytes(request, most, add))
            if len(text) < SMALL_BYTES:
                yield parsed(text)
                return
            async with self._state.bodies.turn(client):
                yield await self._state.lanes.short.run(client, parsed, text)

    async def _prepared(self, work: Any, request: Request) -> Any:
        seconds = self._state.limits.body_seconds
        message = f"the request waits more than {seconds:g} s to be prepared"
        late = ApiError(HTTPStatus.GATEWAY_TIMEOUT, message, code="timeout")
        return await unless_over(work, self._state, seconds, late, request.receive)

    async def _within_time(self, work: Any) -> Any:
        seconds = self._state.limits.body_seconds
        message = f"the body takes more than {seconds:g} s"
        late = ApiError(HTTPStatus.REQUEST_TIMEOUT, message, code="timeout")
        return await unless_over(work, self._state, seconds, late)


def application(state: State) -> ASGIApp:
    """The ASGI application of a server."""
    handlers: dict[Any, Any] = {ApiError: _of_error, HTTPException: _of_status, 500: _of_bug}
    routes = Endpoints(state).routes()
    app: ASGIApp = Guard(Starlette(routes=routes, exception_handlers=handlers), state)
    if state.access.origins:
        app = CORSMiddleware(
            app,
            allow_origins=state.access.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
        )
    return app


def _of_error(request: Request, error: ApiError) -> Response:
    return error.response


def _of_bug(request: Request, error: Exception) -> Response:
    """Any other exception, which the guard prints."""
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error").response


def _of_status(request: Request, error: HTTPException) -> Response:
    """Starlette's own errors: no such path, another method."""
    status = HTTPStatus(error.status_code)
    message = f"{request.method} {shorten(request.url.path)}: {status.phrase.lower()}"
    return ApiError(status, message, headers=error.headers).response


def _lacks(served: Served, what: str) -> ApiError:
    return unknown(f"the model '{served.name}' {what}", "no_such_capability")


def _json(value: Any) -> Response:
    return Response(dump(value), media_type="application/json")


def _model_object(served: Served) -> dict[str, Any]:
    offers = {
        "text": served.engine,
        "embeddings": served.embedder,
        "transcriptions": served.transcriber,
    }
    return {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "relax-mlir",
        "capabilities": [name for name, part in offers.items() if part is not None],
        **({} if served.base is None else {"parent": served.base}),
    }


def _page() -> tuple[bytes, str]:
    """The page to chat, and a policy by which it runs its own code only."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    parts = {}
    for tag in ("script", "style"):
        (code,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        parts[tag] = f"{tag}-src 'sha256-{digest}'"
    policy = "; ".join(
        [
            "default-src 'none'",
            *parts.values(),
            "img-src data:",
            "connect-src 'self'",
            "frame-ancestors 'none'",
        ]
    )
    return text.encode(), policy
