"""Measures packing and reading against stock tools, peers and what the machine can do at best.

A measurement is a contest: contestants that do the same work take turns within one run, round by
round, and are compared within each round. `python -m benchmarks --help` has the commands.
"""
