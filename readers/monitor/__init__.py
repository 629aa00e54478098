"""Measures what a data loader does, in any framework."""
