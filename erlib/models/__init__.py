"""Classifiers of every supported family, and a uniform view of their layers."""

from erlib.models.classifier import Classifier, Output
from erlib.models.loading import load_classifier

__all__ = ["Classifier", "Output", "load_classifier"]
