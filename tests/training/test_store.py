"""A result is whole or it is not there."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
import time

import pytest

from erlib.cli import main
from erlib.disk import DiskFull
from erlib.training.failures import sealing_failures
from erlib.training.store import Store, damage


def write(text, status="done"):
    def work(folder):
        (folder / "result.txt").write_text(text)
        return status

    return work


def test_a_result_is_made_once_and_then_read(tmp_path):
    store = Store(tmp_path)
    assert store.get("runs", "abc") is None
    made = store.make("runs", "abc", write("one"))
    again = store.make("runs", "abc", write("two"))
    assert made == again and (again.path / "result.txt").read_text() == "one"


def test_work_that_fails_leaves_no_result_and_its_folder_for_the_next_attempt(tmp_path):
    store = Store(tmp_path)

    def broken(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        store.make("runs", "abc", broken)
    assert store.get("runs", "abc") is None

    def goes_on(folder):
        assert (folder / "half").read_text() == "half"
        return "done"

    assert store.make("runs", "abc", goes_on).status == "done"


@pytest.mark.parametrize("harm", ["change", "remove", "no seal"])
def test_a_damaged_result_is_found_and_made_again(tmp_path, harm):
    path = Store(tmp_path).make("runs", "abc", write("one")).path
    if harm == "change":
        (path / "result.txt").write_text("0ne")
    else:
        (path / ("result.txt" if harm == "remove" else "DONE")).unlink()
    store = Store(tmp_path)  # a new process
    assert store.get("runs", "abc") is None
    assert (store.make("runs", "abc", write("two")).path / "result.txt").read_text() == "two"


@pytest.mark.parametrize("seal", ["[]", '{"status": "done"}', '{"status": 1, "sha256": {}}', "{"])
def test_a_seal_that_says_nothing_is_damage(tmp_path, seal):
    path = Store(tmp_path).make("runs", "abc", write("one")).path
    (path / "DONE").write_text(seal)
    store = Store(tmp_path)
    assert store.get("runs", "abc") is None
    assert "DONE cannot be read" in store.verify()[path][0]
    assert (store.make("runs", "abc", write("two")).path / "result.txt").read_text() == "two"


def sealed_but_not_moved(tmp_path):
    """What a kill between `DONE` and the rename leaves."""
    path = Store(tmp_path).make("runs", "abc", write("one")).path
    return path.rename(path.with_name("abc.partial"))


def test_a_result_sealed_before_a_kill_and_not_moved_is_only_moved(tmp_path):
    sealed_but_not_moved(tmp_path)
    made = Store(tmp_path).make("runs", "abc", lambda _: pytest.fail("made again"))
    assert (made.path / "result.txt").read_text() == "one" and made.status == "done"
    assert Store(tmp_path).verify() == {made.path: []}


@pytest.mark.parametrize("harm", ["half a seal", "a changed file"])
def test_one_that_is_not_whole_is_made_again_from_nothing(tmp_path, harm):
    partial = sealed_but_not_moved(tmp_path)
    if harm == "half a seal":
        (partial / "DONE").write_text('{"status": "do')
    else:
        (partial / "result.txt").write_text("0ne")
    (partial / "failure.json").write_text("of the attempt that was killed")
    made = Store(tmp_path).make("runs", "abc", write("two"))
    assert {f.name for f in made.path.iterdir()} == {"result.txt", "DONE"}
    assert Store(tmp_path).verify() == {made.path: []}


def test_failed_results_are_forgotten_and_no_others(tmp_path):
    store = Store(tmp_path)
    store.make("runs", "good", write("x"))
    store.make("evals", "bad", write("x", "failed"))
    assert [path.name for path in store.forget("failed")] == ["bad"]
    assert store.get("evals", "bad") is None and store.get("runs", "good")


def test_two_workers_never_make_the_same_result(tmp_path):
    made, inside = [], threading.Event()

    def slow(folder):
        made.append(threading.get_ident())
        inside.set()
        threading.Event().wait(0.3)
        return "done"

    workers = [
        threading.Thread(target=lambda: Store(tmp_path).make("runs", "abc", slow)) for _ in range(2)
    ]
    workers[0].start()
    inside.wait()
    workers[1].start()
    for worker in workers:
        worker.join()
    assert len(made) == 1


def test_verify_names_what_is_wrong_and_gc_removes_it_and_unfinished_work(tmp_path):
    store = Store(tmp_path)
    store.make("runs", "good", write("x"))
    bad = store.make("evals", "bad", write("x")).path
    (bad / "result.txt").write_text("y")
    (tmp_path / "runs" / "half.partial").mkdir()
    faults = {path.name: what for path, what in store.verify().items()}
    assert faults == {"good": [], "bad": ["result.txt has changed"]}
    with store._lock("runs", "half"):  # somebody is at work on it
        assert [p.name for p in Store(tmp_path).collect_garbage()] == ["bad"]
    assert [p.name for p in store.collect_garbage()] == ["half.partial"]
    assert [s.name for s in store.sealed("runs")] == ["good"]


def test_a_result_is_found_by_how_its_hash_begins(tmp_path):
    store = Store(tmp_path)
    for name in ("abc1", "abd2"):
        store.make("runs", name, write("x"))
    assert store.find("runs", "abd").name == "abd2"
    with pytest.raises(ValueError, match="2 runs .* begin with 'ab'"):
        store.find("runs", "ab")


ODD = {
    "empty seal": ("DONE", ""),
    "half a seal": ("DONE", '{"status": "do'),
    "a seal of another kind": ("DONE", '{"status": "done", "sha256": {"result.txt": 3}}'),
    "not text": ("DONE", b"\xff\xfe"),
    "odd dropped": ("DONE", '{"status": "done", "sha256": {}, "dropped": [1]}'),
    "half a description": ("spec.json", '{"data": {"corp'),
    "another description": ("spec.json", "[]"),
    "no metrics": ("metrics.json", None),
}


@pytest.mark.parametrize("odd", [*ODD, "a folder as seal", "no seal", "a file in its place"])
def test_every_command_survives_what_is_in_the_store_names_it_and_gc_mends_it(
    tmp_path, monkeypatch, capsys, odd
):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    good = Store(tmp_path).make("runs", "abc1", write("x")).path
    path = Store(tmp_path).make("runs", "bad2", write("x")).path
    (path / "metrics.json").write_text("{}")
    if odd == "a folder as seal":
        (path / "DONE").unlink()
        (path / "DONE").mkdir()
    elif odd == "no seal":
        (path / "DONE").unlink()
    elif odd == "a file in its place":
        shutil.rmtree(path)
        path.write_text("?")
    else:
        file, content = ODD[odd]
        (path / file).unlink(missing_ok=True)
        if content is not None:
            (path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    sealed = "seal" in odd or odd in ("not text", "odd dropped", "a file in its place")
    (tmp_path / "runs" / "stray.txt").touch()
    for command in (["ls"], ["verify"], ["gc", "--weights", "--failed"], ["ls"]):
        assert main(["runs", *command]) in (0, 1)
        said = capsys.readouterr().out
        if command == ["verify"]:
            assert "stray.txt: it has no DONE" in said and ("bad2: " in said) == sealed
    assert good.exists() and path.exists() != sealed
    made = Store(tmp_path).make("runs", "bad2", write("x"))
    assert damage(made.path) == []


@pytest.mark.parametrize("command", [["gc", "abc"], ["ls", "abc"], ["verify", "abc"]])
def test_a_command_for_the_whole_store_takes_no_hash(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    path = Store(tmp_path).make("runs", "abc", write("x")).path
    assert main(["runs", *command]) == 2 and path.exists()
    assert "looks through the whole store, and not at 'abc'" in capsys.readouterr().err


def test_gc_leaves_what_was_finished_and_only_has_to_be_moved(tmp_path):
    partial = sealed_but_not_moved(tmp_path)
    assert Store(tmp_path).collect_garbage() == [] and partial.exists()


def test_who_waits_for_another_process_says_for_whom_and_how_long(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("erlib.training.store.PATIENCE", 0.1)
    inside, done = threading.Event(), threading.Event()

    def slow(folder):
        inside.set()
        done.wait(10)
        return "done"

    first = threading.Thread(target=lambda: Store(tmp_path).make("runs", "abc", slow))
    second = threading.Thread(target=lambda: Store(tmp_path).make("runs", "abc", slow))
    first.start()
    inside.wait(10)
    second.start()
    time.sleep(0.5)
    done.set()
    first.join()
    second.join()
    said = capsys.readouterr().err.splitlines()
    assert len(said) > 1  # again and again
    wanted = rf"erlib: waiting for run abc, which process {os.getpid()} makes \(\d+ s so far\)"
    assert all(re.fullmatch(wanted, line) for line in said)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"),
     RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")],
)  # fmt: skip
def test_a_full_disk_names_the_folder_and_what_to_free_and_the_next_attempt_goes_on(
    tmp_path, error
):
    def full(folder):
        (folder / "half").write_text("half")
        raise error

    with pytest.raises(DiskFull) as raised:
        Store(tmp_path).make("runs", "abc", sealing_failures(full))
    said = str(raised.value)
    assert f"no room for abc in {tmp_path / 'runs'}" in said and "MB are free there" in said
    assert "runs gc --weights" in said and "ERLIB_STORE" in said
    assert (tmp_path / "runs" / "abc.partial" / "half").exists()
    assert Store(tmp_path).make("runs", "abc", write("x")).status == "done"
