"""The five papers' figures, tables and claims, each paper a `Study`. Loads none until asked."""
