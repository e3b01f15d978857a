"""Asks a language model a question, and goes on with the conversation.

python examples/generate_text.py [MODEL]
"""

import sys

from relax_mlir import llm


def main() -> None:
    """Prints two answers as they are generated, and how fast that was."""
    # The products that the weights mean; rounding activations to 8 bits is faster.
    model = llm.load(sys.argv[1] if len(sys.argv) > 1 else "smollm2", activations="f32")
    session = model.session(capacity=512)
    messages = []
    for question in ("What is the capital of France?", "And of Italy?"):
        messages.append({"role": "user", "content": question})
        print(f"> {question}")
        answer = model.generate(messages, max_tokens=24, session=session)
        pieces = []
        for piece in answer:
            print(piece, end="", flush=True)
            pieces.append(piece)
        messages.append({"role": "assistant", "content": "".join(pieces)})
        print(f"\n[{answer.statistics}]")


if __name__ == "__main__":
    main()
