# The bindings are untyped to the checker but for how dialects are declared.
from typing import Any

def __getattr__(name: str) -> Any: ...
