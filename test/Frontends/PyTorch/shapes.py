# RUN: %PYTHON %s | FileCheck %s
"""Dynamic dims are symbols, their ranges facts, sizes of data are bound; branches are regions."""

import torch
from torch.export import Dim, export

from relax_mlir.frontends.torch import from_exported_program


def show(function, *args, dims=None):
    """Prints the module of a function."""

    class Model(torch.nn.Module):
        def forward(self, *values):
            return function(*values)

    shapes = {"values": tuple(dims)} if dims else None
    print(from_exported_program(export(Model(), args, dynamic_shapes=shapes)).module)


BATCH = Dim("batch", max=16)

# CHECK-LABEL: func.func @main
# CHECK-SAME: #graph.shape<["[[B:s[0-9]+]]", 3, "[[N:s[0-9]+]]"]>
# CHECK-SAME: graph.facts = [{{.*}}"[[B]] <= 16"
# CHECK: graph.reshape
# CHECK-SAME: shape = #graph.shape<["[[B]]", "3*[[N]]"]>
show(lambda x: x.reshape(x.shape[0], -1), torch.ones(4, 3, 5), dims=[{0: BATCH, 2: Dim("n")}])

# CHECK-LABEL: func.func @main
# CHECK: "graph.strided_slice"
# CHECK-SAME: begin = #graph.shape<["[[N:s[0-9]+]] - 2"]>
show(lambda x: x[-2:] + 1, torch.ones(9), dims=[{0: Dim("n", min=4)}])

# CHECK-LABEL: func.func @main
# CHECK: %{{.*}} = "graph.nonzero"
# CHECK: "graph.require"() {any_of = ["u0 <= 12"]
# CHECK: return %{{.*}} : tensor<?x2xi64, #graph.shape<["u0", 2]>>
show(lambda x: x.nonzero(), torch.ones(4, 3))

# CHECK-LABEL: func.func @main
# CHECK: scf.if
# CHECK: "graph.cos"
# CHECK: } else {
# CHECK: "graph.sin"
show(lambda x: torch.cond(x.sum() > 0, torch.cos, torch.sin, (x,)), torch.ones(4))
