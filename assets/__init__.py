"""What the dashboard and the reports show: texts, logos and feature dictionaries; data only, read by importlib.resources."""
