"""Files of models, which are untrusted: containers, metadata, stored tensor formats."""
