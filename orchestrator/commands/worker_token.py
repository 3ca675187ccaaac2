"""``farm worker-token``: access tokens of remote workers: make, list, revoke, condemn, pardon."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, tables, times
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.ledger import batches, store, worker_tokens
from orchestrator.testmatch import worker_verdicts

LIFE = "+90d"


@click.group("worker-token")
def worker_token() -> None:
    """Make, list and stop the access tokens of remote workers (docs/workers.md).

    Example: farm worker-token list
    """


@worker_token.command()
@click.argument("name")
@click.option(
    "--match",
    "matches",
    multiple=True,
    default=("*",),
    show_default=True,
    metavar="PATTERN",
    help="Test matches that its workers may play, as dev-*; may be repeated.",
)
@click.option("--until", default=LIFE, show_default=True, help=f"When it ends: {times.HELP}")
@click.option(
    "--batches",
    type=click.IntRange(1, 100_000),
    default=worker_tokens.BATCHES,
    show_default=True,
    help="Batches that its workers may hold at once.",
)
@click.option(
    "--author",
    is_flag=True,
    help="NAME may submit, approve, stop, continue, change and copy these matches, too.",
)
@click.option(
    "--out",
    type=click.Path(path_type=pathlib.Path, dir_okay=False),
    help="Write the token to this new file (mode 600), not to the terminal.",
)
@common.audited
@common.json_option
def create(
    name: str,
    matches: tuple[str, ...],
    until: str,
    batches: int,
    out: pathlib.Path | None,
    by: str,
    reason: str,
    *,
    author: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a token for the workers of NAME, and show it once: only its hash is stored.

    Example: farm worker-token create anna --match "dev-*" --until +30d --out anna.token
    """
    if not remote.NAME.fullmatch(name):
        raise errors.UsageError(f"NAME: found {name!r}; allowed: letters, digits, . _ -")
    with common.open_ledger() as ledger:
        now_ms = ledger.now_ms()
        until_ms = times.read(until, now_ms)
        who = common.author(ledger, by)
        made, token = worker_tokens.make(name, matches, now_ms, until_ms, who, batches)
        made = dataclasses.replace(made, author=author)
        if not dry_run:
            if out is not None:
                _write(out, token)
            created = {"token": made.id, "owner": name, "matches": list(matches)}
            _journal(ledger, "worker_token_created", created | {"until_ms": until_ms}, who, reason)
            worker_tokens.RedisTokens(ledger.server).write(made)
    report: dict[str, Any] = {**_as_json(made), "dry_run": dry_run}
    if dry_run:
        common.report(as_json, report, f"a token for {name} would be made")
    elif out is not None:
        common.report(as_json, report, f"{made.id}: the token of {name} is in {out}")
    else:
        common.report(as_json, report | {"secret": token}, token)


@worker_token.command("list")
@common.json_option
def list_(*, as_json: bool) -> None:
    """List all tokens, with what was played under each.

    Example: farm worker-token list --json
    """
    with common.open_ledger() as ledger:
        tokens = worker_tokens.RedisTokens(ledger.server)
        rows, uses, now_ms = tokens.all(), tokens.uses(), ledger.now_ms()
    unused = worker_tokens.Use(0, 0, 0, {})
    used = [uses.get(token.id, unused) for token in rows]
    if as_json:
        listed = [
            _as_json(token) | {"valid": not token.invalid(now_ms), "use": dataclasses.asdict(use)}
            for token, use in zip(rows, used, strict=True)
        ]
        common.print_json({"tokens": listed})
        return
    heads = ("token", "name", "author", "matches", "until", "state", "games", "refused", "seen")
    table = rich.table.Table(*heads)
    for token, use in zip(rows, used, strict=True):
        state = token.invalid(now_ms).removeprefix("the token ") or "valid"
        details = (" ".join(token.matches), tables.moment(token.until_ms), state)
        counts = (str(use.games), str(use.refused), str(use.seen.get("host", "")))
        author = "yes" if token.author else ""
        table.add_row(token.id, token.name, author, *details, *counts)
    common.console().print(table)


@worker_token.command()
@click.argument("token")
@common.audited
@common.json_option
def revoke(token: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Revoke a TOKEN by its id: its workers are refused from now on.

    Results that they have reported count (`farm set-aside` takes them out); games that they
    play now are dealt again when their leases end.

    Example: farm worker-token revoke 3f9a1c27d0 --reason "its host was sold"
    """
    with common.open_ledger() as ledger:
        tokens = worker_tokens.RedisTokens(ledger.server)
        found_token = _find(tokens, token)
        if not dry_run and not found_token.revoked_ms:
            who = common.author(ledger, by)
            revoked = {"token": found_token.id, "owner": found_token.name}
            _journal(ledger, "worker_token_revoked", revoked, who, reason)
            tokens.revoke(found_token.id, ledger.now_ms())
    would = "would be" if dry_run else "is"
    sentence = f"the token {found_token.id} of {found_token.name} {would} revoked"
    common.report(
        as_json, {"id": found_token.id, "name": found_token.name, "dry_run": dry_run}, sentence
    )


@worker_token.command()
@click.argument("token")
@common.audited
@common.json_option
def condemn(token: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Stop a TOKEN and set aside all that its workers have played in the open test matches.

    Their games are dealt again. Its owner reads the reason from `farm work`. Matches do this by
    themselves where the evidence suffices (`farm match workers`); this is your own word.

    Example: farm worker-token condemn 3f9a1c27d0 --reason "it plays another build"
    """
    if not reason:
        raise errors.UsageError("--reason: the token's owner is told why; give a reason")
    with common.open_ledger() as ledger:
        tokens = worker_tokens.RedisTokens(ledger.server)
        access = _find(tokens, token)
        if access.condemned:
            raise errors.RefusedError(f"{access.id} is stopped already: {access.condemned}")
        if not dry_run:
            draft = {"rule": worker_verdicts.BY_HAND, "reason": reason}
            worker_verdicts.condemn(ledger, tokens, access, draft, common.author(ledger, by))
            batches.RedisBatches(ledger.server).end_all(access.id)
    would = "would be" if dry_run else "is"
    report = {"id": access.id, "name": access.name, "dry_run": dry_run}
    common.report(
        as_json,
        report,
        f"the token {access.id} of {access.name} {would} stopped, and its results in open matches"
        f" {'would be' if dry_run else 'are'} set aside",
    )


@worker_token.command()
@click.argument("token")
@common.audited
@common.json_option
def pardon(token: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Let the workers of a TOKEN that was stopped for its results play again.

    The evidence against them is deleted; results that were set aside stay set aside.

    Example: farm worker-token pardon 3f9a1c27d0 --reason "its memory was replaced"
    """
    with common.open_ledger() as ledger:
        tokens = worker_tokens.RedisTokens(ledger.server)
        access = _find(tokens, token)
        if not access.condemned:
            raise errors.RefusedError(
                f"{access.id} was not stopped for its results; a revoked token stays so: make a new"
                " one with `farm worker-token create`"
            )
        if not dry_run:
            worker_verdicts.pardon(ledger, tokens, access, reason, common.author(ledger, by))
    may = "might" if dry_run else "may"
    report = {"id": access.id, "name": access.name, "dry_run": dry_run}
    common.report(as_json, report, f"the token {access.id} of {access.name} {may} play again")


def _find(tokens: worker_tokens.RedisTokens, token: str) -> worker_tokens.WorkerToken:
    """Return a token by its id; raise ``RefusedError`` where there is none."""
    access = tokens.find(token)
    if access is None:
        ids = ", ".join(other.id for other in tokens.all()) or "none"
        raise errors.RefusedError(f"there is no token {token!r}; tokens: {ids}")
    return access


def _journal(
    ledger: store.RedisLedger, kind: str, fields: dict[str, Any], who: str, reason: str
) -> None:
    common.append_farm(ledger, contract.Draft(kind, {**fields, "reason": reason}), who)


def _as_json(token: worker_tokens.WorkerToken) -> dict[str, Any]:
    """Return what may be shown of a token: not even its hash."""
    fields = dataclasses.asdict(token)
    del fields["sha256"]
    return fields


def _write(path: pathlib.Path, token: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise errors.HostError(f"{path}: {error.strerror}; give --out a new file") from error
