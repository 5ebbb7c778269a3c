"""The server side of the client protocol."""
