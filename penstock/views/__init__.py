"""Views: tree patterns over documents that feed each other, planned under capacity limits.

Import submodules directly: some load numba, and some the libraries of the extra `views`.
"""
