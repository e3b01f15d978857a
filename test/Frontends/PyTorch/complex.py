# RUN: %PYTHON %s | FileCheck %s
"""Complex tensors are two inside; the function takes and returns both parts along a last dim."""

import torch
from torch.export import Dim, export

from relax_mlir.frontends.torch import from_exported_program


def show(function, *args):
    """Prints the module of a function, whose first dims are symbols."""

    class Model(torch.nn.Module):
        def forward(self, *values):
            return function(*values)

    program = export(Model(), args, dynamic_shapes={"values": ({0: Dim("n")},) * len(args)})
    print(from_exported_program(program).module)


Z = torch.ones(4, 3, dtype=torch.complex64)

# The product: ac - bd and ad + bc.
# CHECK-LABEL: func.func @main
# CHECK-SAME: tensor<?x3x2xf32
# CHECK-SAME: -> tensor<?x3x2xf32
# CHECK-COUNT-3: "graph.multiply"
# CHECK: %[[IMAGINARY:.*]] = "graph.add"
# CHECK: "graph.multiply"
# CHECK: %[[REAL:.*]] = "graph.subtract"
# CHECK: %[[JOINED:.*]] = "graph.stack"(%[[REAL]], %[[IMAGINARY]])
# CHECK: return %[[JOINED]]
show(lambda z: z * z, Z)

# What only changes positions is done with each part.
# CHECK-LABEL: func.func @main
# CHECK-COUNT-2: "graph.permute_dims"(%{{.*}}) {{.*}} : (tensor<?x3xf32
# CHECK-NOT: "graph.permute_dims"
show(lambda z: z.t(), Z)

# A view of real elements as complex ones, and back, is no arithmetic.
# CHECK-LABEL: func.func @main
# CHECK-SAME: tensor<?x2xf64
# CHECK-NOT: "graph.multiply"
# CHECK: return
show(lambda x: torch.view_as_real(torch.view_as_complex(x)), torch.ones(4, 2).double())

# Of a real signal half of the transform, [n, 3 // 2 + 1].
# CHECK-LABEL: func.func @main
# CHECK: "graph.matmul"
# CHECK: return %{{.*}} : tensor<?x2x2xf32
show(lambda z: torch.fft.rfft(z.real), Z)
