from __future__ import annotations

from threading import Event, Thread, current_thread

from erlib.explorer.worker import Worker


def test_jobs_of_many_threads_are_done_by_one_in_order():
    worker, seen = Worker(), []

    def ask(asker):
        for i in range(50):
            done = worker.do(lambda i=i: seen.append((current_thread(), asker, i)))
        assert done.wait(10)

    askers = [Thread(target=ask, args=[name]) for name in "abc"]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len({thread for thread, *_ in seen}) == 1
    for name in "abc":
        assert [i for _, asker, i in seen if asker == name] == list(range(50))


def test_a_long_job_lets_others_be_done_between_its_steps():
    worker, started, go_on, order = Worker(), Event(), Event(), []

    def long():
        started.set()
        go_on.wait(10)
        order.append("first step")
        worker.let_others()
        order.append("second step")

    done = worker.do(long)
    started.wait(10)
    worker.do(lambda: order.append("click"))
    go_on.set()
    assert done.wait(10) and order == ["first step", "click", "second step"]
