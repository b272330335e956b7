""" "Explanation Regularisation through the Lens of Attributions" (Ferreira, Titov, Aziz)."""
