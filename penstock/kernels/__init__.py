"""Numba behind one door, and the kernels that several rooms share: trees, unions, MessagePack."""
