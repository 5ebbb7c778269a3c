"""The study of the paper on leased content-based routing."""
