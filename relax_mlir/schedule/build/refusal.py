"""How a schedule rule says why it leaves a program of its kind to the next rule."""


class Refusal(Exception):
    """Raised by a rule: the program is of its kind, but has a part that the rule cannot schedule.

    The text says which: `f64: no step`. It is shown to those who ask for remarks.
    """
