"""Measures what a data loader does, in any framework."""

from readers.monitor.attach import LoaderMonitor

__all__ = ["LoaderMonitor"]
