"""The tests of the importer need JAX."""

import pytest

pytest.importorskip("jax")
