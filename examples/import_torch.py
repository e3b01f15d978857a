"""Compiles a module of PyTorch by `torch.compile`, once for all sizes, and by `torch.export`.

pip install 'relax-mlir[torch]'
python examples/import_torch.py
"""

import torch
from torch.export import Dim

import relax_mlir
from relax_mlir.frontends.torch import from_exported_program


class Attention(torch.nn.Module):
    """Self-attention of two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mixes the positions of each sequence: [batch, length, 16]."""
        heads = self.project(x).unflatten(-1, (3, 2, 8)).transpose(1, 3)
        q, k, v = heads.unbind(2)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).flatten(2)


def main() -> None:
    """Compares both ways with PyTorch at three lengths."""
    model = Attention().eval()
    compiled = torch.compile(model, backend="relax", dynamic=True)
    sizes = {0: Dim("batch"), 1: Dim("length", max=64)}
    program = torch.export.export(model, (torch.randn(2, 5, 16),), dynamic_shapes=(sizes,))
    exported = relax_mlir.compile(from_exported_program(program))["main"]
    print(exported)
    for n in (2, 7, 33):
        x = torch.randn(3, n, 16)
        with torch.no_grad():
            wanted = model(x)
            error = (compiled(x) - wanted).abs().max()
        other = abs(exported(x.numpy()) - wanted.numpy()).max()
        print(f"length {n}: errors {error:.0e} and {other:.0e}")


if __name__ == "__main__":
    main()
