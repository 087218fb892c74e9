"""Exact SHAP contributions under encryption: terms from the Guest, factors from Hosts."""
