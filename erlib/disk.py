"""What is said where a disk is full: in which folder, for what, and what may be freed?"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class DiskFull(OSError):
    """Something could not be written: where, what it needed, and what may be freed."""


def out_of_room(error: BaseException) -> bool:
    """Is a disk full, or not to be written on? safetensors has no class of its own for it."""
    return (isinstance(error, OSError) and error.errno in NO_ROOM) or (
        "No space left on device" in str(error)
    )


@contextmanager
def naming_a_full_disk(
    what: str, folder: Path, needed: Callable[[], str], free: str
) -> Iterator[None]:
    """An error for want of room names the folder, what was `needed` there, and what to `free`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, DiskFull) or not out_of_room(error):
            raise
        place = next(p for p in (folder, *folder.parents) if p.exists())
        left = megabytes(shutil.disk_usage(place).free)
        raise DiskFull(
            errno.ENOSPC,
            f"no room for {what} in {folder} ({error}): {left} are free there, and {needed()}. "
            f"{free}; the same command then goes on",
        ) from error


def megabytes(count: int) -> str:
    """A number of bytes as a reader says it."""
    return f"{count / 1e6:,.1f} MB"
