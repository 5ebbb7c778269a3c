"""The supervised skip ring as printed (Algorithms 1-4), each erratum amended or not by name."""
