"""Content-based publish/subscribe: a DHT, a tree over it, leased routing on the tree."""
