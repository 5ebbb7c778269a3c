"""The DHT: key ownership, fingers and lookups on the self-stabilizing sorted ring."""
