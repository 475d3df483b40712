"""Covering among the interests of one link: what is sent stands for everything that is held."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.routing.covering import CoverTable, maximal_of
from penstock.routing.interests import Interest, name_of
from tests.examples import examples
from tests.routing.interest_worlds import SHAPES, interests, shapes


@settings(max_examples=examples(60))
@given(st.data())
def test_what_is_sent_is_what_is_maximal_among_what_is_held(data: st.DataObject) -> None:
    table, held, sent = CoverTable(SHAPES), dict[int, Interest](), dict[int, Interest]()
    for _ in range(data.draw(st.integers(1, 25))):
        if held and data.draw(st.integers(0, 2)) == 0:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            changed = table.remove(gone)
        else:
            interest = data.draw(interests(data.draw(shapes), numbered=False))
            held[name_of(interest)] = interest
            changed = table.insert(name_of(interest), interest)
        assert not changed.removed.keys() - sent.keys()
        assert not changed.added.keys() & sent.keys()
        sent = {n: i for n, i in {**sent, **changed.added}.items() if n not in changed.removed}
        assert sent == dict(table.maximal())
        # Equal interests have equal names, so the maximal ones do not depend on the order.
        assert set(sent) == set(maximal_of(held))
        assert len(table) == len(held)
        for name in held:
            cover = table.cover_of(name)
            assert (cover is None) == table.is_maximal(name)
            assert cover is None or sent[cover].covers(held[name])


@given(st.data())
def test_many_at_once_send_nothing_that_is_taken_back(data: st.DataObject) -> None:
    given_interests = data.draw(
        st.lists(interests(data.draw(shapes), numbered=False), min_size=1, max_size=20)
    )
    held = {name_of(one): one for one in given_interests}
    changed = CoverTable(SHAPES).insert_many(held.items())
    assert changed.added == maximal_of(held)
    assert not changed.removed


def test_without_covering_everything_is_sent() -> None:
    table = CoverTable(SHAPES, covers=False)
    wide = Interest(1, (), ())
    narrow = Interest(1, ((2, ((2, 1, 0), (2, 1, 1))),), ())  # type: ignore[arg-type]
    assert table.insert(1, wide).added == {1: wide}
    assert table.insert(2, narrow).added == {2: narrow}
