"""Tokens per second of SmolLM2, beside llama.cpp with the same float32 weights.

    python benchmarks/llm.py --threads 1,2 --pp 128,512 --tg 64 --context 0,512 --rounds 5

Takes the options of `relax-llm bench`.
"""

import sys

from relax_mlir.tools import relax_llm

if __name__ == "__main__":
    sys.exit(relax_llm.main(["bench", *sys.argv[1:], "--vs", "llama.cpp"]))
