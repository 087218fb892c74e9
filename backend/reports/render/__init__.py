"""The report on one model: its fields, what it says in words, and its three forms: JSON, HTML and PDF. Built from what the Guest knows."""
