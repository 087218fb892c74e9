"""The nodes of the Guest's trees, for pages that draw them: a page that shows no tree loads nothing else with them."""

from backend.trees.ensemble import Leaf, Split

__all__ = ["Leaf", "Split"]
