"""What happens if the process is killed, or the disk fails, at this very file operation?

`operations(work, folder)` lists what `work` does to the files below a folder: every file that is
opened to be written, every rename, removal, new folder and change of a file's rights, in order.
`disturbed(work, folder, at, how)` does the work in a process of its own, in which that operation

- "kill": never happens, since the process is killed before it;
- "torn": is a file that the process is killed in the midst of writing;
- "full": fails for want of room.

Python tells of its own operations (`sys.addaudithook`); `announced` adds those of the libraries
that write by themselves.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import safetensors.torch
import torch
from transformers import PreTrainedTokenizerFast

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.rename": 1,
    "os.remove": 0,
    "os.mkdir": 0,
    "os.rmdir": 0,
    "os.chmod": 0,
    "os.utime": 0,
    "os.link": 1,
    "os.symlink": 1,
    "os.truncate": 0,
}  # → which path counts
Work = Callable[[], object]


@dataclass(frozen=True)
class Ended:
    """How the process ended: killed, with an error (`DiskFull: …`), or well, without; and what it
    did to files until then."""

    killed: bool
    error: str
    operations: list[str]


def operations(work: Work, folder: Path) -> list[str]:
    """What the work does to files below the folder: `os.rename store/runs/…`, …"""
    ended = disturbed(work, folder)
    assert not ended.killed and not ended.error, ended
    return ended.operations


def disturbed(work: Work, folder: Path, at: int | None = None, how: str = "kill") -> Ended:
    """Do the work in a fork of this process, and harm its operation number `at`."""
    told, telling = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(told)
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            torch.set_num_threads(1)
            _attempt(work, _Disk(folder, at, how, telling))
        finally:
            os._exit(0)
    os.close(telling)
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    lines, _, error = said.decode().partition("\0")
    return Ended(os.WIFSIGNALED(status), error, lines.splitlines())


def _attempt(work: Work, disk: _Disk) -> None:
    error = ""
    with announced():
        sys.addaudithook(disk)
        try:
            work()
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
        disk.watching = False
    os.write(disk.telling, f"\0{error}".encode())


class _Disk:
    """Counts the operations below a folder, and harms one."""

    def __init__(self, folder: Path, at: int | None, how: str, telling: int) -> None:
        self.folder, self.at, self.how, self.telling = f"{folder}/", at, how, telling
        self.count, self.watching = 0, True

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching or (event != "open" and event not in CHANGES):
            return
        if event == "open" and not (arguments[2] or 0) & WRITES:
            return
        path = self._path(arguments, CHANGES.get(event, 0))
        if not path.startswith(self.folder) or _nothing_to_do(event, path):
            return
        number, self.count = self.count, self.count + 1
        os.write(self.telling, f"{event} {path.removeprefix(self.folder)}\n".encode())
        if number == self.at:
            self._harm(event, path)

    def _harm(self, event: str, path: str) -> None:
        if self.how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if self.how == "torn" and event == "open":
            self.watching = False
            with open(path, "wb") as file:
                file.write(b'{"half')
        os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def _path(arguments: tuple[Any, ...], which: int) -> str:
        """The path in full; removals of whole folders name files within an open one."""
        path = arguments[which]
        if isinstance(path, int):
            return ""  # a file that is open already
        path = os.fsdecode(path)
        inside = next((a for a in arguments[which + 1 :] if isinstance(a, int) and a > 0), None)
        if not os.path.isabs(path) and inside is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{inside}"), path)
        return os.path.abspath(path)


def _nothing_to_do(event: str, path: str) -> bool:
    """Is it a folder that is there, or the removal of what is not?"""
    return (event == "os.mkdir" and os.path.isdir(path)) or (
        event == "os.remove" and not os.path.lexists(path)
    )


def announced() -> ExitStack:
    """While open, what pyarrow and the two libraries in Rust write is an event like all else."""

    def tell(path: Any) -> None:
        sys.audit("open", os.fspath(path), "wb", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def telling(write: Callable[..., Any], file: Callable[..., Any]) -> Callable[..., Any]:
        def told(*arguments: Any, **options: Any) -> Any:
            tell(file(*arguments, **options))
            return write(*arguments, **options)

        return told

    stack = ExitStack()
    for owner, name, file in (
        (safetensors.torch, "serialize_file", lambda tensors, path, *_, **__: path),
        (pd.DataFrame, "to_parquet", lambda frame, path, **_: path),
        (
            PreTrainedTokenizerFast,
            "_save_pretrained",
            lambda self, save_directory, *_, **__: Path(save_directory) / "tokenizer.json",
        ),
    ):
        stack.enter_context(patch.object(owner, name, telling(getattr(owner, name), file)))
    return stack
