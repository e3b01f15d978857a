"""The endpoints of OpenAI's interface: from bodies to requests of engines, and to responses."""
