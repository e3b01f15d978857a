"""Settings of every Python test."""

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; what it finds does not.
settings.register_profile("relax", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relax")
