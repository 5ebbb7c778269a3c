"""Publications of one topic: store, anti-entropy, broadcast, retention, order (paper 1, 4)."""
