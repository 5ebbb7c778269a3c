"""How each overlay is drawn: the same of live states and of simulated ones."""
