"""How a model predicts and why: importance, directions, dependence, interactions, mean contributions. Guest's partial model alone."""
