"""Conditions on attributes: their SQL, their algebra, and the index that matches them."""
