"""Models on disk: configuration, weights, tokenizer and chat template together."""
