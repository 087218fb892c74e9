"""OpBoost (Li et al., VLDB 2023): a Host sends noisy ranks of its values once, the Guest boosts on them by itself."""
