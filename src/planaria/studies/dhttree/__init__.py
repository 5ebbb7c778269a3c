"""The study of the paper on the tree over a DHT."""
