"""The study of the paper on daMulticast."""
