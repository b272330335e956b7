"""Do explanations look like what people marked?"""

from __future__ import annotations

from erlib.papers.cells import text_mean
from erlib.papers.cross_paper.columns import Specs, Subject, column

TITLES = {"auc": "AUC", "average_precision": "AP", "token_f1": "token F1", "iou_f1": "IOU F1"}


def _asked(subject: Subject, method: str) -> Specs:
    return subject.ask("word_plausibility", "explained", method, level="word")


for _name, _title in TITLES.items():
    column(_name, group="Plausible", title=_title, read=text_mean(_name), by="method")(_asked)
