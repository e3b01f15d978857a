"""A server of language models with OpenAI's HTTP interface."""
