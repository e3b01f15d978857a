"""Special functions, element by element: computed in f64, rounded once."""

from .airy import airy_ai
from .bessel import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_k0,
    modified_bessel_k1,
    spherical_bessel_j0,
)
from .gamma import digamma, lgamma, polygamma, zeta
from .incomplete import igamma, igammac
from .modified import modified_bessel_i0, modified_bessel_i1
from .normal import erfc, erfcx, erfinv, ndtri

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "erfc",
    "erfcx",
    "erfinv",
    "igamma",
    "igammac",
    "lgamma",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "polygamma",
    "spherical_bessel_j0",
    "zeta",
]
