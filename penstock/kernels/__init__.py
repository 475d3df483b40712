"""The only import of numba, its cache, and the kernels that several rooms share: trees, unions of
ranges, MessagePack, byte strings."""
