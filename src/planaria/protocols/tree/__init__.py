"""A tree over the DHT: each host at its topmost key of a reference tree, neighbours by lookup."""
