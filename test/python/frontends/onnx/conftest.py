"""The tests of the importer need the package `onnx`."""

import pytest

pytest.importorskip("onnx")
