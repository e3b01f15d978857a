"""The application of Ray Serve: replicas of the ASGI application that `relax-llm serve` runs.

Source: Ray's documentation, "Set Up FastAPI and HTTP", "Passing arguments to applications".
"""

from typing import Any

from ray import serve

from relax_mlir.llm.ray.options import Options
from relax_mlir.llm.ray.replica import Replica

TRIES = 3
"""How often a replica is started before the application has failed."""


def app(options: Options) -> Any:
    """The application, for `serve.run` and for configuration files of Serve.

    Raises UsageError if two models have the same name, or one has none.
    """
    _ = options.models
    has_machine = options.threads is None and not options.numa
    deployment = serve.deployment(
        name="relax",
        num_replicas=options.num_replicas,
        ray_actor_options={"num_cpus": options.threads or 0},
        max_replicas_per_node=1 if has_machine else None,
        max_ongoing_requests=options.max_ongoing_requests,
        graceful_shutdown_timeout_s=options.drain_timeout,
        max_constructor_retry_count=TRIES,
    )
    return deployment(serve.ingress()(Replica)).bind(options)
