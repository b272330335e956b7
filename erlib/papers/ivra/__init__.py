""" "IvRA: A Framework to Enhance Attention-Based Explanations for Language Models with
Interpretability-Driven Training" (Xie, Vosoughi, Hassanpour)."""
