"""The environment variables."""

from __future__ import annotations

import pytest

from readers.monitor.switch import Switch, read_switch


@pytest.mark.parametrize(
    ("variables", "switch"),
    [
        ({}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR": "1"}, Switch(on=True, every=1)),
        ({"MGE_DATA_MONITOR": "1"}, Switch(on=True, every=1)),
        ({"MGE_DATA_MONITOR": " True "}, Switch(on=True, every=1)),
        ({"PACKER_DATA_MONITOR": "yes"}, Switch(on=True, every=1)),
        ({"PACKER_DATA_MONITOR": "ON"}, Switch(on=True, every=1)),
        ({"PACKER_DATA_MONITOR": ""}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR": "off", "MGE_DATA_MONITOR": "1"}, Switch(on=False, every=1)),
        (
            {"MGE_DATA_MONITOR": "1", "MGE_DATA_MONITOR_FREQUENCY": "10"},
            Switch(on=True, every=10),
        ),
        (
            {"PACKER_DATA_MONITOR_FREQUENCY": "3", "MGE_DATA_MONITOR_FREQUENCY": "10"},
            Switch(on=False, every=3),
        ),
    ],
)
def test_what_the_variables_say(variables: dict[str, str], switch: Switch) -> None:
    assert read_switch(variables) == switch


@pytest.mark.parametrize(
    ("variables", "switch"),
    [
        ({"PACKER_DATA_MONITOR": "maybe"}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR": "2", "MGE_DATA_MONITOR": "1"}, Switch(on=True, every=1)),
        ({"PACKER_DATA_MONITOR_FREQUENCY": "0"}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR_FREQUENCY": "-4"}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR_FREQUENCY": "often"}, Switch(on=False, every=1)),
        ({"PACKER_DATA_MONITOR_FREQUENCY": "٣"}, Switch(on=False, every=1)),
    ],
)
def test_nonsense_warns(variables: dict[str, str], switch: Switch) -> None:
    with pytest.warns(RuntimeWarning, match="it is ignored"):
        assert read_switch(variables) == switch


def test_the_variables_are_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKER_DATA_MONITOR", "1")
    assert read_switch().on
    monkeypatch.setenv("PACKER_DATA_MONITOR", "0")
    assert not read_switch().on
