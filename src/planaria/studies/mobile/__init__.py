"""The study of the paper on link reversal."""
