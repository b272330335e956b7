"""Every way of training for explanations by every way of judging them, with the truth planted."""
