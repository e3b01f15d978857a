"""The arguments of the application, which pydantic checks: from command lines, too."""

from dataclasses import fields
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.engine import MAX_SEQUENCES, STEP_TOKENS
from relax_mlir.llm.checkpoints.adapters import named_adapters
from relax_mlir.llm.serving.keys import read_keys
from relax_mlir.llm.serving.limits import LOOPBACK, Access, Limits
from relax_mlir.llm.serving.loading import MAX_QUEUE, Loading, named_models

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _split(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""Strings, or one with commas between them."""


def _pairs(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return named_adapters(value.split(","))
    except UsageError as error:
        raise ValueError(str(error)) from None  # which pydantic reports


Folders = Annotated[dict[str, str], BeforeValidator(_pairs)]
"""Folders by names, or NAME=FOLDER with commas between them."""


class Options(BaseModel):
    """What is served, and by how many replicas; the other options are those of `relax-llm serve`.

    Each of `num_replicas` loads the model, or the list of models, and takes all CPUs of a machine
    of its own; with `threads` it takes as many CPUs, and with `numa` those of a NUMA node, so that
    a machine may have several. `max_ongoing_requests` are sent to a replica at once, more wait.

    Without API keys, requests need a name of loopback as their host, or one of `allowed_hosts`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | list[str] = "smollm2"
    num_replicas: Count = 1
    threads: Count | None = None
    numa: bool = False
    max_ongoing_requests: Count = 1024
    weights: str = "native"
    activations: str = "int8"
    cache: str | None = None
    context: Count | None = None
    lora: str | None = None
    adapters: Folders = Field(default_factory=dict)
    keep: Annotated[int, Field(ge=0)] | None = None
    pages: Count | None = None
    max_sequences: Count = MAX_SEQUENCES
    step_tokens: Count = STEP_TOKENS
    max_queue: Count = MAX_QUEUE
    max_tokens: Count = 1 << 31
    max_body: Count = 4 << 20
    request_timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600.0
    drain_timeout: Seconds = 30.0
    api_key_file: str | None = None
    allowed_hosts: Names = ()
    cors_origins: Names = ()

    @property
    def models(self) -> dict[str, str]:
        """The models by their names; raises UsageError as `named_models` does."""
        models = [self.model] if isinstance(self.model, str) else self.model
        return named_models(models, self.adapters)

    @property
    def loading(self) -> Loading:
        """How each model is loaded."""
        names = {each.name for each in fields(Loading)} & type(self).model_fields.keys()
        return Loading(**{name: getattr(self, name) for name in names})

    @property
    def limits(self) -> Limits:
        """Bounds of each request."""
        return Limits(
            requests=2 * self.max_ongoing_requests,  # a client has half: all that Serve sends
            body_bytes=self.max_body,
            max_tokens=self.max_tokens,
            answer_seconds=self.request_timeout,
            drain_seconds=self.drain_timeout,
        )

    def access(self) -> Access:
        """Who may use a replica, with the keys that its machine has; raises UsageError."""
        keys = read_keys((), self.api_key_file)
        extra = [host.lower() for host in self.allowed_hosts]
        # Pages of other sites have no key, so their names for this host are harmless with keys.
        hosts = [*LOOPBACK, *extra] if extra or not keys else None
        return Access(keys, hosts, self.cors_origins)
