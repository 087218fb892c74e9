"""How a model is grown by several parties."""
