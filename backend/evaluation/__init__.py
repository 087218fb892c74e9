"""How good a model's scores are: AUC, KS, calibration, stability, each with an interval."""
