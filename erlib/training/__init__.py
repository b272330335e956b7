"""Training, the store of runs and evaluations, and what carries them out."""

from erlib.training import kinds as kinds  # registers every kind of evaluation
from erlib.training import pilot as pilot  # registers its update strategy
