"""What each overlay adds to a simulation: its options, its clients, its books."""
