"""A language server for modules as text.

Each file of `features/` has pure functions from a `Document` and an offset to a result, which need
no server; `server.py` and `protocol.py` translate them to the protocol. Text is read twice.
`syntax.py` finds names and their definitions in the tokens, in any text, broken or not.
`analysis.py` lets MLIR and the passes check the text in a child process, for its diagnostics, the
types of values and facts on symbols.
"""
