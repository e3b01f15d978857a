"""Host code: what turns a graph function of explicit calls into a native entry point."""
