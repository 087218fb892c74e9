"""What a model says and why: importance, directions, dependence, interactions, mean contributions. Guest's partial model alone."""
