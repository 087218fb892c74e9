"""The nodes of the Guest's trees, for whoever draws them: a page that shows no tree loads nothing else with them."""

from backend.trees.ensemble import Leaf, Split

__all__ = ["Leaf", "Split"]
