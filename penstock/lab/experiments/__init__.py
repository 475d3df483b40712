"""Experiments: what the papers claim, measured here. `penstock lab run NAME`."""
