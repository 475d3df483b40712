"""The kernels of the fast gear, as a set that can be compiled ahead of its use."""

from __future__ import annotations

import os

from penstock.kernels.preparation import KernelSet, kernels_ready

FAST_GEAR = KernelSet(
    name="fast-gear",
    rooms=("kernels", "matching", "joins", "routing", "flow"),
    warm_up="penstock.flow.warm_up:warm_up",
)

GEAR_VARIABLE = "PENSTOCK_GEAR"
"""`plain`: the plain gear serves, always. `fast`: the fast one does, and what is not compiled yet
is compiled when it is first used. Not set: the fast one once its kernels are compiled."""


def may_load_kernels() -> bool:
    """Whether a call of a kernel finds it compiled, or is meant to wait until it is."""
    return os.environ.get(GEAR_VARIABLE) == "fast" or kernels_ready(FAST_GEAR)
