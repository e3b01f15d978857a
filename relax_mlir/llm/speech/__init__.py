"""Speech: Whisper's front end, encoder and decoder, compiled, and texts of recordings."""
