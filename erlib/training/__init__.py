"""Training, the store of runs and evaluations, and what carries them out."""
