"""Why a schedule rule leaves a program of its kind to the next rule."""


class Refusal(Exception):
    """Raised by a rule for a program of its kind with a part that it cannot schedule.

    The message names it: `f64: no step`. It is shown as a remark.
    """
