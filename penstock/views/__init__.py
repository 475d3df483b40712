"""Views: tree patterns over documents that feed each other, planned under capacity limits.

Imported by module: some load numba, and some the libraries of the extra `views`.
"""
