"""Settings of every Python test."""

import gc

from hypothesis import HealthCheck, settings

from relax_mlir import pipelines

# How long an example takes depends on what else the machine does; what it finds does not.
settings.register_profile("relax", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relax")

# A session keeps a million objects, which Python would go through time and again.
gc.set_threshold(50_000, 20, 50)

# Each memory plan is replayed before host code relies on it.
for _place, _step in enumerate(pipelines.STEPS, 1):
    if _step.name == "plan-memory":
        _check = pipelines.Step("relax-check-memory-plan", "no two live tensors share a byte")
        pipelines.STEPS = (*pipelines.STEPS[:_place], _check, *pipelines.STEPS[_place:])
