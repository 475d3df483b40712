"""The registry with several processes at work on one home."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.registry import Registry, rebuild, subscribe_body
from penstock.storage import Home, RecordKind

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)"
CHEAP = "SELECT * FROM stocks WHERE per < 10"

_FORK = multiprocessing.get_context("fork")


def _subscribe(path: Path, count: int) -> None:
    registry = Registry(Home.open(path))
    for i in range(count):
        stored = registry.subscribe(f"SELECT * FROM stocks WHERE per < {i}")
        if i % 3 == 0:
            registry.withdraw(stored.id)


def _catch_up(path: Path) -> None:
    Registry(Home.open(path))


def dumps(home: Home) -> list[object]:
    registry = Registry(home)
    try:
        return [registry._catalog.database.dump(), registry._database.dump()]
    finally:
        registry.close()


def run(*processes: multiprocessing.process.BaseProcess) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def test_two_processes_subscribe_at_once(tmp_path: Path) -> None:
    home = Home.create(tmp_path)
    registry = Registry(home)
    registry.define(STOCKS)
    registry.close()
    run(*[_FORK.Process(target=_subscribe, args=(tmp_path, 9)) for _ in range(2)])
    incremental = dumps(home)
    assert len(Registry(home).subscriptions()) == 2 * 6
    rebuild(home)
    assert dumps(home) == incremental


def test_two_processes_catch_up_at_once(tmp_path: Path) -> None:
    home = Home.create(tmp_path)
    home.log.append([(RecordKind.DDL, STOCKS.encode())])
    bodies = [subscribe_body(f"SELECT * FROM stocks WHERE per < {i}") for i in range(50)]
    home.log.append([(RecordKind.SUBSCRIBE, body) for body in bodies])
    run(*[_FORK.Process(target=_catch_up, args=(tmp_path,)) for _ in range(3)])
    follower = Registry(home, catch_up=False)
    assert [stored.id for stored in follower.subscriptions()] == list(range(1, 51))
    assert follower.applied == 51


def test_a_killed_process_is_made_up_for(tmp_path: Path) -> None:
    home = Home.create(tmp_path)
    registry = Registry(home)
    registry.define(STOCKS)
    registry.close()
    for _ in range(3):
        before = home.log.end
        worker = _FORK.Process(target=_subscribe, args=(tmp_path, 1000))
        worker.start()
        while home.log.end < before + 3:
            time.sleep(0.001)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        incremental = dumps(home)
        rebuild(home)
        assert dumps(home) == incremental
    kinds = frozenset({RecordKind.SUBSCRIBE})
    accepted = [record.offset for record in home.log.read(0, kinds=kinds)]
    registry = Registry(home)
    assert [registry.subscription(i, withdrawn=True).id for i in accepted] == accepted


def test_threads_share_one_registry(tmp_path: Path) -> None:
    registry = Registry(Home.create(tmp_path))
    registry.define(STOCKS)

    def work(_: int) -> None:
        for _ in range(5):
            stored = registry.subscribe(CHEAP)
            assert registry.subscription(stored.id) == stored

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(3)))
    assert len(registry.subscriptions()) == 15
