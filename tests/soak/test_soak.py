"""A long run of long stories: `make soak SEED=7`."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.differential.stories import MIXED, Story, stories
from tests.differential.test_hub import check

pytestmark = pytest.mark.soak


@given(stories(MIXED, max_steps=60))
def test_long_stories(story: Story) -> None:
    check(story)
