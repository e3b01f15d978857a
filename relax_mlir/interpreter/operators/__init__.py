"""What each operator of the graph means, in NumPy: one function per operator, one file per family.

An operator of `dialects/graph/nn.py` is computed by the function of its name in `nn.py`. It takes
the operands by position, None for one that is left out, and those attributes as keywords that it
asks for, as Python values; expressions over symbols are integers by then. `element` is the name of
the result's element type.

A file's `read` says how operands reach its functions: `exact` gives floats as float64, and results
are rounded once to the result's type; `stored` gives elements as they are, which results are too.

Nothing here looks at how operators are legalised: the two are held against each other.
"""
