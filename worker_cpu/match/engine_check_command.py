"""``farm engine check``: the command, its table, JSON and JUnit file."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree as ET

import click

from orchestrator.common import errors, numbers, output
from orchestrator.engines import known_programs
from worker_cpu.match import cli_values, engine_check, programs

COLOURS: dict[engine_check.State, str] = {
    "ok": "green",
    "failed": "red",
    "warning": "yellow",
    "skipped": "bright_black",
}


@click.command("check-engine")
@click.argument("command")
@click.option(
    "--protocol",
    type=click.Choice(list(engine_check.PROTOCOLS)),
    default="uci",
    show_default=True,
    help="What it speaks.",
)
@click.option(
    "--dir",
    "home",
    default=".",
    type=click.Path(file_okay=False, exists=True, path_type=pathlib.Path),
    help="Its working directory.  [default: here]",
)
@click.option("--option", "given", multiple=True, metavar="NAME=VALUE", help="Set before each.")
@click.option(
    "--patience",
    type=numbers.NumberRange(0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an answer may take.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    metavar="FILE",
    help="Write a JUnit report, which CI systems show.",
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Show what was sent and said, also where all is well."
)
@output.json_option
def check_engine(
    command: str,
    protocol: Literal["uci", "xboard"],
    home: pathlib.Path,
    given: Sequence[str],
    patience: float,
    junit: pathlib.Path | None,
    *,
    verbose: bool,
    as_json: bool,
) -> None:
    """Check whether an engine keeps its protocol, for its author's CI.

    COMMAND is the program, with its arguments in one word. Each check says what was sent
    and what the engine said where something failed. Exit code 3 when a check failed;
    warnings are what programs can live with and users will not like.

    Example: farm engine check ./my-engine --option Hash=16 --junit engine.xml
    """
    settings = dict(cli_values.setting("--option", text) for text in given)
    argv = programs.command(command, home.absolute(), "farm engine check", home_key="--dir")
    if known_programs.wants_xboard(argv, protocol):
        note = "Note: programs of that name speak XBoard; if its handshake fails: --protocol xboard"
        click.echo(note, err=True)
    if junit is not None:
        _make_folder(junit)  # before the checks, not behind them
    checks = engine_check.PROTOCOLS[protocol](argv, home, patience, settings)
    findings: list[engine_check.Finding] = []
    for finding in checks.run():
        findings.append(finding)
        if not as_json:
            _show(finding, verbose=verbose)
    count = collections.Counter(finding.state for finding in findings)
    if junit is not None:
        junit.write_bytes(_junit(command, findings))
    if as_json:
        checks_made = [dataclasses.asdict(finding) for finding in findings]
        output.print_json(
            {"command": command, "protocol": protocol, **count, "checks": checks_made}
        )
    else:
        states = [f"{count[state]} {state}" for state in COLOURS if count[state]]
        click.echo(f"{len(findings)} checks: {', '.join(states)}")
    if count["failed"]:
        sys.exit(errors.RefusedError.exit_code)


def _make_folder(junit: pathlib.Path) -> None:
    try:
        junit.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.UsageError(
            f"--junit: found {junit}; allowed: a file whose folder can be made"
            f" ({errors.reason(error)})"
        ) from error


def _show(finding: engine_check.Finding, *, verbose: bool) -> None:
    state = click.style(f"{finding.state:<8}", fg=COLOURS[finding.state])
    message = f"  ({output.plain(finding.words)})" if finding.words else ""
    click.echo(f"{state} {finding.name:<13} {finding.rule}{message}")
    if verbose or finding.state in ("failed", "warning"):
        for line in finding.talk:
            click.echo(f"             {output.plain(line)}")


def _junit(command: str, findings: Sequence[engine_check.Finding]) -> bytes:
    """Return a JUnit report: failures with their talk, warnings as the output of a test."""
    counts = collections.Counter(finding.state for finding in findings)
    suite = ET.Element(
        "testsuite",
        name=f"farm engine check {_printable(command)}",
        tests=str(len(findings)),
        failures=str(counts["failed"]),
        skipped=str(counts["skipped"]),
        errors="0",
    )
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname="engine", name=finding.name)
        message, talk = _printable(finding.words), _printable("\n".join(finding.talk))
        if finding.state == "failed":
            failure = ET.SubElement(case, "failure", message=message)
            failure.text = f"{finding.rule}\n\n{talk}"
        elif finding.state == "skipped":
            ET.SubElement(case, "skipped", message=message)
        elif finding.state == "warning":
            ET.SubElement(case, "system-out").text = f"Warning: {message}\n\n{talk}"
    ET.indent(suite)
    report: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return report


def _printable(text: str) -> str:
    """Return text that XML can hold, whatever an engine wrote."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
