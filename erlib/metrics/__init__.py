"""What is measured of a model and its explanations."""
