"""Options of passes: what is printed is read back as the same pass."""

import string
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_mlir.errors import PipelineError
from relax_mlir.passes import Pass

TEXT = st.text(string.printable.replace("'", ""))
NAME = st.text(string.ascii_letters + string.digits + "_.:/@ {}[]", min_size=1).map(str.strip)


@dataclass(frozen=True)
class Sample(Pass):
    """Has an option of every kind."""

    max_size: int = 8
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (1, 2)
    verbose: bool = False
    quiet: bool = True
    target: str = "native"
    share: float = 0.5


SAMPLES = st.builds(
    Sample,
    max_size=st.integers(),
    names=st.lists(NAME.filter(bool)).map(tuple),
    sizes=st.lists(st.integers()).map(tuple),
    verbose=st.booleans(),
    quiet=st.booleans(),
    target=TEXT,
    share=st.floats(allow_nan=False),
)


@given(SAMPLES)
def test_printed_pass_reads_back(sample):
    name, _, options = str(sample).partition("{")
    assert name == "sample"
    assert Sample.parse(options.removesuffix("}")) == sample


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("max-size", "option 'max-size' of pass 'sample' is an integer, but got nothing"),
        ("max-size=4.5", "option 'max-size' of pass 'sample' is an integer, but got '4.5'"),
        ("sizes=1,x", "option 'sizes' of pass 'sample' is an integer, but got 'x'"),
        ("share=half", "option 'share' of pass 'sample' is a number, but got 'half'"),
        ("verbose=yes", "option 'verbose' of pass 'sample' is true or false, but got 'yes'"),
        ("max_size=4", "pass 'sample' has no option 'max_size'; did you mean 'max-size'?"),
        ("= 4", "pass 'sample': cannot read its options at '= 4'"),
        ('target="x', "pass 'sample': cannot read its options at 'target=\"x'"),
    ],
)
def test_wrong_option_is_named(options, message):
    with pytest.raises(PipelineError) as caught:
        Sample.parse(options)
    assert str(caught.value) == message
