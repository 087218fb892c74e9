"""What an operator sees of a process: whether it is alive, how much it does, and one log line an event. Never which person it is about."""
