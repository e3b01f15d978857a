"""Replaces `bfloat` by `i16` in LLVM IR that only moves such values.

    %1 = select <8 x i1> %0, <8 x bfloat> %x, <8 x bfloat> %y
    store <8 x bfloat> %1, ptr %p, align 2
      ->
    %1 = select <8 x i1> %0, <8 x i16> %x, <8 x i16> %y
    store <8 x i16> %1, ptr %p, align 2

On machines without bf16 instructions LLVM scalarises vectors of `bfloat`: it selects and stores
their lanes one by one. Kernels compute with the bits, so that only moves are left. Scalable vectors
(SVE), which are products' operands alone, remain.
"""

import re

# Ops that move values, and constants.
_MOVES = re.compile(
    r"(?:%\S+ = )?(?:tail )?"
    r"(?:alloca|bitcast|extractelement|freeze|getelementptr|insertelement|load|phi|select"
    r"|shufflevector|store|(?:call|declare) [^@]*@llvm\.masked\.)"
    r"|@\S+ = .*\b(?:constant|global) "
)
# Functions that take or return values: others must pass integers too.
_CALLS = re.compile(r"ret |define |(?:(?:%\S+ = )?(?:tail )?call|declare) [^@]*@(?!llvm\.)")
_TYPE = re.compile(r"(?<!<vscale x 8 x )\bbfloat\b")
_CONSTANT = re.compile(r"\b0xR([0-9A-F]{4})\b")
_INTRINSIC = re.compile(r"(@llvm\.masked\.\w+\.v\d+)bf16")


def move_as_integers(text: str, calls: bool = False) -> str:
    """LLVM IR text with `i16` for `bfloat`; unchanged if it computes with such values.

    Float constants must be bit patterns. With `calls`, functions pass integers too, which is for
    machines whose instruction selection does not know the type at all, or in masked lanes (SVE).
    """
    if "bfloat" not in text:
        return text
    lines = text.split("\n")
    named = [i for i, line in enumerate(lines) if "bfloat" in line and ' c"' not in line]
    selected = [i for i in named if _TYPE.search(lines[i])]
    for i in selected:
        line = lines[i].lstrip()
        if not (_MOVES.match(line) or (calls and _CALLS.match(line))):
            return text
    for i in selected:
        line = _CONSTANT.sub(lambda bits: str(int(bits[1], 16)), _TYPE.sub("i16", lines[i]))
        lines[i] = _INTRINSIC.sub(r"\1i16", line)
    return "\n".join(lines)
