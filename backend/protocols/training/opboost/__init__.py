"""OpBoost (Li et al., VLDB 2023): a Host sends noisy ranks of its values once, the Guest boosts on them by itself.

Its parts are cited by the names that the paper gives them: Global-Map, dLDP, Partition-dLDP, …
"""
