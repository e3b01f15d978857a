"""Prompts with images that models are tried on: a text, and names of `tiny_vision.PICTURES`."""

from tiny_vision import IMAGE

STEPS = 64
"""Tokens of answers."""
PROMPTS = {
    "none": ("<|begin|>hello world", ()),
    "one": (f"<|begin|>{IMAGE} hello", ("wide",)),
    "two": (f"{IMAGE}he{IMAGE}llo 12 w", ("wide", "small")),
    "equal": (f"a{IMAGE}{IMAGE}", ("same", "same")),
}
