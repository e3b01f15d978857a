"""Schedules: how tensor programs become loops for a machine; one rule per file."""
