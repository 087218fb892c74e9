"""What is true of a model, judged once, worst first: every page, report, notice and command reads these facts and their sentences."""
