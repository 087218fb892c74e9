"""Sums by group of records under encryption: who counts, who groups, and what is suppressed."""
