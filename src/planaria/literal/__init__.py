"""The papers as printed, for tests and reports only. The product never imports this."""
