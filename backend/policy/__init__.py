"""How a score becomes a decision: bands, points, and what happens to the unusual. Pure arithmetic; knows no model and no store."""
