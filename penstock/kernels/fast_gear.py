"""The kernels of the fast gear, as a set that can be compiled ahead of its use."""

from __future__ import annotations

from penstock.kernels.preparation import KernelSet, gear_setting, kernels_ready

FAST_GEAR = KernelSet(
    name="fast-gear",
    rooms=("kernels", "documents", "matching", "joins", "routing", "flow"),
    warm_up="penstock.flow.warm_up:warm_up",
)


def may_load_kernels() -> bool:
    """Whether kernels are compiled, or calls should wait for their compilation."""
    return gear_setting() == "fast" or kernels_ready(FAST_GEAR)
