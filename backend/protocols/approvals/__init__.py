"""What waits for a Host's operator: trainings, and what is asked of a model."""
