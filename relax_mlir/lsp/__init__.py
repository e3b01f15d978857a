"""A language server for modules as text.

Each feature is a file of pure functions from a `Document` and an offset to a result, which need no
server; `server.py` translates them to the protocol. Text is read twice. `syntax.py` finds names and
their definitions in the tokens, in any text, broken or not. `analysis.py` lets MLIR and the passes
check the text in a child process, for its diagnostics, the types of values and facts on symbols.
"""
