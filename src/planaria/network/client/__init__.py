"""Light clients: what they say to their node, and the API that applications use."""
