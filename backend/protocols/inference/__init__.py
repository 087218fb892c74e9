"""How a sample is scored by several parties."""
