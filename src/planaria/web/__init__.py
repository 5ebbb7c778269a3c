"""The dashboard: a page that draws a network, live or recorded, in any browser."""
