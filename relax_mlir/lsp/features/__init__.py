"""What an editor asks for: each a pure function from a document and an offset to a result."""
