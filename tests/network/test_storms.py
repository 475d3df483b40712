"""Random overlays, churn, crashes, plain and caching nodes: contents are DuckDB's in the end."""

from __future__ import annotations

import pytest

from tests.network.storms import Storm, weather

SEEDS = 200


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_whatever_goes_wrong_every_content_is_right_in_the_end(first: int) -> None:
    for seed in range(first, first + 25):
        try:
            weather(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: tests.network.storms.weather({seed}) runs it again")
            raise


def test_nothing_is_lost_or_resumed_while_links_only_delay() -> None:
    for seed in range(1_000, 1_020):
        storm = Storm(seed, is_calm=True)
        storm.settle()
        storm.check()
        assert storm.network.traffic.lost == 0
        # One greeting from each end of each link: no session ever failed.
        assert storm.network.traffic.frames["Hello"] == 2 * len(storm.edges)
        storm.close()


def test_a_storm_runs_again_byte_for_byte() -> None:
    assert weather(7) == weather(7) != weather(8)
