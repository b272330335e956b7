"""The JupyterLab explorer: models side by side, methods below each other, words to click."""

from erlib.explorer.widget import Explorer, explore

__all__ = ["Explorer", "explore"]
