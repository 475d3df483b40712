"""Benchmarks: a module `x` with a function `x` is `penstock bench x`.

The function's parameters, annotated for typer, are the options of the command. It takes `--json`
and then prints one object, `{"results": [{...}, ...], ...}`, and nothing else.
"""
