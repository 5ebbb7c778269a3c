"""What is searched: for each protocol its nodes, its starts, its small constants, its judge."""
