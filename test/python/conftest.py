"""Settings of every Python test."""

import atexit
import datetime
import gc
import os
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from relax_mlir import cache, pipelines
from relax_mlir.codegen import translating
from relax_mlir.target import Target

# How long an example takes depends on what else the machine does; what it finds does not.
settings.register_profile("relax", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relax")

# Folders of tests that take milliseconds each.
QUICK = frozenset(
    "codegen host interpreter lsp numerics ops passes runtime symbolic testing "
    "tools transforms".split()
)

# Folders of tests that take long: in a run of all tests, half of their files take turns.
SLOW = frozenset("cpus dataflow frontends llm numerics schedule".split())

# A session keeps a million objects, which Python would go through time and again.
gc.set_threshold(50_000, 20, 50)

# Each memory plan is replayed before host code relies on it.
for _place, _step in enumerate(pipelines.STEPS, 1):
    if _step.name == "plan-memory":
        _check = pipelines.Step("relax-check-memory-plan", "no two live tensors share a byte")
        pipelines.STEPS = (*pipelines.STEPS[:_place], _check, *pipelines.STEPS[_place:])


def pytest_addoption(parser):
    parser.addoption(
        "--rotation",
        default=os.environ.get("RELAX_ROTATION", "today"),
        help="of tests that take turns: those of day N, of `today` (the default), or `all`",
    )


def pytest_configure(config):
    """Processes of one run agree on the day, also about midnight, and share what they compile.

    What is named on the command line with its parameters runs on any day.
    """
    if "[" in " ".join(config.args):
        config.option.rotation = "all"
    elif config.getoption("--rotation") == "today":
        config.option.rotation = str(
            datetime.datetime.now(datetime.timezone.utc).date().toordinal()
        )
    os.environ["RELAX_ROTATION"] = config.getoption("--rotation")
    if not hasattr(config, "workerinput"):  # workers are given paths in any case
        os.environ["RELAX_WHOLE_RUN"] = str(int(not config.option.file_or_dir))
    if "RELAX_CACHE_DIR" not in os.environ:
        models = cache.folder() / "models"  # downloaded once for all runs
        models.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="relax-tests-")
        Path(folder, "models").symlink_to(models)
        os.environ["RELAX_CACHE_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_report_header(config):
    return f"rotation: {config.getoption('--rotation')}, all of it with --rotation=all"


def pytest_collection_modifyitems(config, items):
    """Marks what is quick, and leaves out tests that take turns on other days."""
    for item in items:
        slow = item.get_closest_marker("rotate") or item.get_closest_marker("sweep")
        if item.path.parent.name in QUICK and not slow:
            item.add_marker(pytest.mark.quick)
    if (rotation := config.getoption("--rotation")) == "all":
        return
    variants, left = defaultdict(list), set()
    runs_all = os.environ["RELAX_WHOLE_RUN"] == "1"
    for item in items:
        if runs_all and not SLOW.isdisjoint(item.path.parts) and _turn(item.path, rotation) % 2:
            left.add(item)
            continue
        mark = item.get_closest_marker("rotate")
        if mark is not None and mark.kwargs.get("together"):
            if _turn(item.path, rotation) % mark.args[0]:
                left.add(item)
        elif mark is not None:
            variants[item.nodeid.partition("[")[0]].append(item)
    for found in variants.values():
        share = found[0].get_closest_marker("rotate").args[0]
        found.sort(key=lambda item: crc32(item.nodeid.encode()))  # neighbours have much in common
        left.update(item for i, item in enumerate(found) if (i - int(rotation)) % share)
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def _turn(path, rotation):
    """A count that grows by the day, and is another one for another file."""
    return crc32(path.name.encode()) + int(rotation)


@pytest.fixture
def llvm_turns(request):
    """LLVM optimises what a file's tests compile on one day in four; on others it only translates.

    It takes most of the time of kernels, which compute the same either way.
    """
    rotation = request.config.getoption("--rotation")
    turn = rotation == "all" or _turn(request.path, rotation) % 4 == 0
    if not turn and not Target.parse("native").host.has("amx-tile"):
        with translating():
            yield
    else:
        yield
