"""The kernels of the fast gear, as a set that can be compiled ahead of its use."""

from __future__ import annotations

from penstock.kernels.preparation import KernelSet

FAST_GEAR = KernelSet(
    name="fast-gear",
    rooms=("kernels", "matching", "joins", "routing", "flow"),
    warm_up="penstock.flow.warm_up:warm_up",
)
