"""What runs the protocols on real machines."""
