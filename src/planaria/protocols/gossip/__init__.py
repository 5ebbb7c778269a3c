"""Hierarchical topics by gossip (daMulticast): membership, supertopic links, dissemination."""
