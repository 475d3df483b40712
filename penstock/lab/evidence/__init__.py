"""The papers reproduced: their tables and figures beside ours, and their claims with verdicts.

`penstock lab paper NAME`. A paper is a module of `penstock.lab.evidence.papers`.
"""
