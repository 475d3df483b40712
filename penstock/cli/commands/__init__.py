"""The commands: a module `x` with a function `x` is `penstock x`."""
