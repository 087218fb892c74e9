"""The names of the k largest of encrypted numbers, and nothing else: for the one side; for the other side not even the names."""
