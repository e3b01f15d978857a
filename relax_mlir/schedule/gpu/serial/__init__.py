"""Programs without nests: as loops of single elements, which threads share where they may."""
