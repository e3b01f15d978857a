"""Language models: model files, tokenizers, sampling, and the compiled Llama decoder."""
