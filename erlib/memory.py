"""What is done where a GPU has not the memory for all texts of a batch at once?

Half as many texts at once, until it fits: of a training batch one part after the other, whose
gradients add up (`erlib.losses.Step.parts`), of an evaluation one smaller batch after the other. On
a CPU nothing is ever split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

Made = TypeVar("Made")
Item = TypeVar("Item")


@dataclass
class Room:
    """How many texts are taken at once from now on; None: all."""

    at_once: int | None = None

    def fitted(self, texts: int, work: Callable[[int | None], Made]) -> Made:
        """`work(at_once)` on so many texts, tried again with half of them while they do not fit.

        What a failed attempt has drawn at random is drawn again.
        """
        while True:
            state = _random_state()
            try:
                return work(self.at_once)
            except torch.OutOfMemoryError as error:
                taken = min(texts, self.at_once or texts)
                if taken == 1:
                    error.add_note("a single text does not fit: take a shorter max_length")
                    raise
                self.at_once = (taken + 1) // 2
            _give_back(state)

    def portions(self, items: Sequence[Item], work: Callable[[Sequence[Item]], Made]
                 ) -> Iterator[tuple[Sequence[Item], Made]]:  # fmt: skip
        """`work` on all items, as many at once as fit; each portion with what was made of it."""
        first = 0
        while first < len(items):
            rest = items[first:]

            def some(at_once: int | None, rest: Sequence[Item] = rest) -> tuple[int, Made]:
                taken = rest[:at_once]
                return len(taken), work(taken)

            count, made = self.fitted(len(rest), some)
            yield rest[:count], made
            first += count


def _random_state() -> tuple[torch.Tensor, torch.Tensor | None]:
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.get_rng_state(), torch.cuda.get_rng_state() if on_gpu else None


def _give_back(state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
    of_cpu, of_gpu = state
    torch.set_rng_state(of_cpu)
    if of_gpu is not None:
        torch.cuda.set_rng_state(of_gpu)
        torch.cuda.empty_cache()
