"""Random elements: a function of a key and a counter, the same bits on every target.

    state : tensor<2xi64>, the key and the counter

Functions return what they draw and the state after it: drawing from one state twice gives the same.
"""

from .distributions import bernoulli, dropout, random_integers, random_normal, random_uniform
from .philox import random_bits
from .sampling import multinomial, multinomial_from_uniform

__all__ = [
    "bernoulli",
    "dropout",
    "multinomial",
    "multinomial_from_uniform",
    "random_bits",
    "random_integers",
    "random_normal",
    "random_uniform",
]
