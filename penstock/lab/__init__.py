"""Workloads, experiments and benchmarks."""
