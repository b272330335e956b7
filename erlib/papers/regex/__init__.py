"""REGEX: "Towards Faithful Explanations for Text Classification …" (Li, Hu, Chen, He)."""
