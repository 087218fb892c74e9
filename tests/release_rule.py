"""The one exception of the release rule that trainings of tests take.

Whether scores hide their paths is measured among 1,000 people or more, so most worlds of tests are too small to break the rule.
"""

EVERY_SCORE = 1.0  # a share that may fit one path: a model that is quick to train has few trees, or one, whose scores name most paths
