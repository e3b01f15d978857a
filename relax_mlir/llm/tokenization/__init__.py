"""Text to tokens and back, chat templates, and texts that end an answer."""
