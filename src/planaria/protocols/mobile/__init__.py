"""Anonymous topics among moving nodes: only sinks of an acyclic orientation speak (fifth paper)."""
