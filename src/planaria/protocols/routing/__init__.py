"""Content-based routing with leases (paper 4): filters, matching, five strategies, one broker."""
