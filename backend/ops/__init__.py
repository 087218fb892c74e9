"""What whoever operates a process sees of it: whether it lives, how much it does, one line an event. Never whom it is about."""
