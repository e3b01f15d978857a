"""A replica of Ray Serve: engines, and the application over them, in a process of its own."""

from contextlib import ExitStack

from starlette.types import ASGIApp

from relax_mlir.errors import ExecutionError
from relax_mlir.llm.ray.numa import take_node
from relax_mlir.llm.ray.options import Options
from relax_mlir.llm.serving.app import application
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import State
from relax_mlir.llm.serving.loading import load_served
from relax_mlir.llm.serving.sandbox import Sandbox


class Replica:
    """Loads the models; Serve asks it for the application, for its health, and ends it.

    Raises UsageError, ModelError and CompileError as `load_served` does, and ExecutionError if all
    NUMA nodes of the machine are taken.
    """

    def __init__(self, options: Options) -> None:
        access = options.access()
        with ExitStack() as resources:
            if options.numa:
                resources.enter_context(take_node())
            sandbox = resources.enter_context(Sandbox())
            served: dict[str, Served] = {}
            for name, path in options.models.items():
                served |= load_served(name, path, options.loading, sandbox)
                resources.callback(served[name].close)
            self._state = State(served, options.limits, access)
            resources.callback(self._state.lanes.close)
            self._resources = resources.pop_all()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """The application that answers requests."""
        return application(self._state)

    def check_health(self) -> None:
        """Raises ExecutionError once an engine has ended: Serve starts another replica then."""
        if self._state.status != "ok":
            raise ExecutionError("an engine has ended")

    def __del__(self) -> None:  # Serve calls it once requests are answered, or time is over
        if hasattr(self, "_resources"):
            self._resources.close()
