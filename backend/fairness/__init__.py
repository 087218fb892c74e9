"""Disparity by group, proxies of protected attributes, ages: arithmetic on counts of any origin."""
