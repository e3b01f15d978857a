"""Settings of every Python test."""

import gc

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; what it finds does not.
settings.register_profile("relax", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relax")

# A session keeps a million objects, which Python would go through time and again.
gc.set_threshold(50_000, 20, 50)
