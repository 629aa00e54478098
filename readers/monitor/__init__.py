"""Measures what a data loader does, in any framework."""

from readers.monitor.attach import LoaderMonitor
from readers.monitor.by_hand import DataLoadingMonitor
from readers.monitor.diagnosis import diagnose
from readers.monitor.html_report import write_html_report
from readers.monitor.recording import Recording, load_recording, save_recording
from readers.monitor.report import report_text
from readers.monitor.summary import summarize
from readers.monitor.trace import write_trace

__all__ = [
    "DataLoadingMonitor",
    "LoaderMonitor",
    "Recording",
    "diagnose",
    "load_recording",
    "report_text",
    "save_recording",
    "summarize",
    "write_html_report",
    "write_trace",
]
