"""What moves: message classes, their bytes, the channel and the transcript, a network of simulated latency."""
