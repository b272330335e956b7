"""A result is whole or it is not there."""

from __future__ import annotations

import threading

import pytest

from erlib.training.store import Store


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
