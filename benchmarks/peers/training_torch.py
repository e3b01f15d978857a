"""Steps of training in PyTorch: a process that reads a case and writes gradients and times.

python training_torch.py CASE.npz RESULT.npz THREADS compiled|eager
"""

import sys
import time

import numpy as np
import torch
from torch.nn import functional


def loss_of(p: dict, tokens: torch.Tensor, labels: torch.Tensor, heads: int, layers: int):
    """The loss of `training_case.Transformer`."""
    x = p["tokens.w"][tokens] + p["positions.w"][: tokens.shape[1]]
    b, n, d = x.shape
    for layer in range(layers):
        own = {k.removeprefix(f"{layer}."): v for k, v in p.items()}
        y = functional.layer_norm(x, (d,), own["norm1.w"], own["norm1.b"])
        parts = (y @ own["qkv.w"]).split(d, 2)
        q, k, v = (part.view(b, n, heads, d // heads).transpose(1, 2) for part in parts)
        attention = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attention.transpose(1, 2).reshape(b, n, d) @ own["out.w"]
        y = functional.layer_norm(x, (d,), own["norm2.w"], own["norm2.b"])
        x = x + functional.gelu(y @ own["up.w"] + own["up.b"]) @ own["down.w"]
    x = functional.layer_norm(x, (d,), p["norm.w"], p["norm.b"])
    scores = x @ p["head.w"]
    return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


def main(case: str, result: str, threads: str, kind: str) -> None:
    """Writes loss, gradients and the seconds of each step."""
    torch.set_num_threads(int(threads))
    arrays = dict(np.load(case))
    heads, layers, steps = (int(arrays.pop(name)) for name in ("#heads", "#layers", "#steps"))
    tokens, labels = (torch.from_numpy(arrays.pop(name)) for name in ("#tokens", "#labels"))
    p = {name: torch.from_numpy(a).requires_grad_() for name, a in arrays.items()}
    function = torch.compile(loss_of, dynamic=False) if kind == "compiled" else loss_of
    loss = function(p, tokens, labels, heads, layers)
    loss.backward()
    gradients = {f"gradient {name}": value.grad.numpy().copy() for name, value in p.items()}
    optimizer = torch.optim.AdamW(p.values(), lr=1e-3, weight_decay=0.01)
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        function(p, tokens, labels, heads, layers).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    np.savez(result, loss=loss.detach().numpy(), seconds=seconds, **gradients)


main(*sys.argv[1:])
