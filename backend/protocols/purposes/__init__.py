"""What a conversation that measures is for, and whether a Host agrees to it."""
