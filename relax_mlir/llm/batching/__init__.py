"""Many sequences of one model, a step of all at a time."""
