"""The operators, by family; a module of any name here registers its own."""

from importlib import import_module
from pkgutil import iter_modules

for _each in iter_modules(__path__):
    import_module(f"{__name__}.{_each.name}")
