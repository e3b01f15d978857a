"""The `graph` dialect object with its attributes and types."""

from relax_mlir.bindings import ext, ir


class Graph(ext.Dialect, name="graph"):
    """Computational graphs whose tensors carry symbolic shapes (paper §3.1-3.3)."""


class ShapeAttr(Graph.Attribute, name="shape"):
    """Dims in canonical form: `#graph.shape<["n", 4096, "2*n + 1", "?"]>`.

    As the encoding of a tensor type it names the dims; `"?"` is a dim nothing is known of.
    """

    dims: ir.ArrayAttr


class ShapeValueType(Graph.Type, name="shape_value"):
    """A shape as a value: `!graph.shape_value<["n", 4]>` (paper Table 1, `Shape`)."""

    dims: ir.ArrayAttr


class ObjectType(Graph.Type, name="object"):
    """Any value at all: the coarsest annotation (paper Table 1, `Object`)."""


class AnyTupleType(Graph.Type, name="any_tuple"):
    """A tuple of any elements (paper Table 1, `Tuple`); `tuple<!graph.object>` has one element."""


class CallableType(Graph.Type, name="callable"):
    """A function of any signature, pure or not (paper Table 1, `Callable`)."""


class AnyElementType(Graph.Type, name="any_element"):
    """Elements of any type: `tensor<?x4x!graph.any_element>` (paper Table 1, `Tensor`)."""


class HostObjectType(Graph.Type, name="host_object"):
    """An object of the host program, which only functions of its own can look into."""


class StorageType(Graph.Type, name="storage"):
    """A block of bytes that tensors are placed in (paper §4.3)."""
