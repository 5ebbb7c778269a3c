"""The supervised skip ring (paper 1): labels, supervisor, subscriber, shortcuts."""
