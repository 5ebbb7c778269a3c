"""The study of the paper on the supervised skip ring."""
