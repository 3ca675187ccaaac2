"""A kibitzer is never on a hall's cores, whatever the hall's host is called."""

from __future__ import annotations

import os

import pytest

from orchestrator.common import errors
from orchestrator.ledger import vitals
from worker_cpu.kibitz import command

BOOT = "3f3b"


def hall(*cpus: int, host: str = "cpu1", boot: str = BOOT, role: str = "hall") -> vitals.Vitals:
    """Return what a host tells of itself."""
    return vitals.Vitals(host=host, at_ms=1, hall="hall-1", boot=boot, cores=cpus, role=role)


def checked(*told: vitals.Vitals, boot: str = BOOT, host: str = "cpu1") -> str:
    """Return why cores 4 and 5 may not be used, '' when they may."""
    try:
        command.check_cores(frozenset({4, 5}), boot, host, told)
    except errors.HostError as error:
        return str(error)
    return ""


def test_shared_cores_are_refused_with_what_to_do() -> None:
    """The refusal names the hall, the shared cores and the ways out."""
    why = checked(hall(0, 1, 2, 5, 6))
    assert "hall-1 plays on this machine's cores 5" in why
    assert "another host" in why
    assert "--cpus" in why
    assert "farm host forget cpu1" in why


def test_cores_beside_the_halls_are_its_own() -> None:
    """Disjoint sets on one machine are allowed."""
    assert checked(hall(0, 1, 2, 3)) == ""


def test_a_hall_without_cores_has_all_of_its_machine() -> None:
    """Where a hall is bound to nothing there is no room for a kibitzer."""
    assert "bound to no cores" in checked(hall())


def test_one_machine_is_one_whatever_it_is_called() -> None:
    """The kernel's boot id tells, not the name; only without one names do."""
    assert checked(hall(5, host="another-name"))
    assert checked(hall(5, boot="77")) == ""
    assert checked(hall(5, boot=""))
    assert checked(hall(5, boot="", host="cpu2")) == ""
    assert checked(hall(5), boot="")
    assert checked(hall(5), boot="", host="cpu2") == ""


def test_a_gpu_box_is_not_shared_either() -> None:
    """A host of remote seats tells no cores: all of it is the games'."""
    assert checked(hall(role="gpu"))


def test_cores_that_this_process_may_not_use_are_refused() -> None:
    """A wish beyond the process' own set is an error that names both."""
    with pytest.raises(errors.HostError, match="found 100000; this process may use"):
        command.bind_cores(frozenset({100_000}))


def test_a_wish_binds_the_process_and_none_binds_nothing() -> None:
    """What the engine inherits is what was asked for."""
    before = os.sched_getaffinity(0)
    try:
        assert command.bind_cores(frozenset()) == before
        wanted = frozenset({min(before)})
        assert command.bind_cores(wanted) == wanted == os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)
