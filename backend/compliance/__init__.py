"""What the law says about the features: rule packs, how words are recognised in names and meanings, findings with citations."""
