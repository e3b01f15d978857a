"""Tests of schedules take turns to have LLVM optimise: what they test is done before it begins."""

import pytest


@pytest.fixture(autouse=True)
def _llvm_turns(llvm_turns: None) -> None:
    """See there."""
