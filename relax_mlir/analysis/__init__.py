"""Facts about programs, computed on demand: functions from IR to frozen data."""
