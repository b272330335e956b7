from __future__ import annotations

import pytest

from erlib.attributions import decomposition
from erlib.attributions.decomposition import chunk_size


def chunk(fixed, each, available, most=10, least=1):
    return chunk_size("a method", 7, most, fixed=fixed, each=each, available=available, least=least)


def test_as_many_fit_as_there_is_memory_for_beside_what_is_needed_anyway():
    assert chunk(fixed=4, each=3, available=10) == 2
    assert chunk(fixed=4, each=3, available=7) == 1
    assert chunk(fixed=0, each=3, available=10**9) == 10


@pytest.mark.parametrize(("fixed", "each", "available"), [(4, 3, 6), (5, 10, 12), (0, 1, -5)])
def test_where_not_even_one_fits_the_error_says_what_to_change(fixed, each, available):
    with pytest.raises(ValueError, match="of 7 tokens .*; raise max_memory, lower batch_size"):
        chunk(fixed, each, available)


def test_no_more_than_the_cache_holds_but_at_least_as_many_as_are_fast(monkeypatch):
    monkeypatch.setattr(decomposition, "CACHE_BYTES", 12)
    assert chunk(fixed=0, each=4, available=10**9) == 3
    assert chunk(fixed=0, each=4, available=10**9, least=5) == 5
    assert chunk(fixed=0, each=4, available=16, least=5) == 4
