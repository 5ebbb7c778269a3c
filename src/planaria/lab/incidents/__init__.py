"""Incidents of other systems as scenarios: a naive protocol stuck, and Planaria that recovers."""
