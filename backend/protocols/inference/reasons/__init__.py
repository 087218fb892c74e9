"""SHAP values of Guest and Host features under encryption: names of one person's reasons, sums over many people, no value of one."""
