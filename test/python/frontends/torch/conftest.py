"""The tests of the importer need PyTorch."""

import pytest

pytest.importorskip("torch")
