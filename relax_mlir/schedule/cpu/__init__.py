"""Schedules for CPUs: loops over memrefs with vector bodies, no scalar innermost loop."""
