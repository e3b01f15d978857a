"""Attributes of calls in the text of modules."""


def segments(operands: int, results: int = 1) -> str:
    """Those that say how many operands and results a call has."""
    counts = [[int(i < n) for i in range(most)] for n, most in ((operands, 32), (results, 8))]
    ins, outs = (", ".join(map(str, count)) for count in counts)
    return f"operandSegmentSizes = array<i32: {ins}>, resultSegmentSizes = array<i32: {outs}>"
