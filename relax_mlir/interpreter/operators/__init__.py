"""The semantics of graph operators in NumPy: one function per operator, one file per family.

An operator of `dialects/graph/nn.py` is computed by the function of its name in `nn.py`. It takes
the operands by position, None for an absent one, and the attributes that are among its keyword
parameters, as Python values; expressions over symbols are evaluated. `element` is the name of the
result's element type.

A file's `read` converts operands: `exact` gives floats as float64, and results are rounded once to
the result's type; `stored` gives stored elements, and results are stored elements too.

Nothing here depends on how operators are legalised: the two are tested against each other.
"""
