"""A suite of tests of a model: thresholds set beforehand, figures by plain arithmetic, a verdict each. Knows no person's id."""
