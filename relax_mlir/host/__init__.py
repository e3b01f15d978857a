"""Host code: lowers graph functions of explicit calls to native entry points."""
