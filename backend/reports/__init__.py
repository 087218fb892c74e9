"""The canonical report, the comparison of two models, the adverse action notice: what they hold and how they are drawn."""
