"""``farm acl``: the Redis users of the farm, printed as an ACL file or applied to a server.

Passwords live in files of a directory, one a user, for this user's eyes only; what is
printed has their SHA-256 only. Missing ones are made.
"""

from __future__ import annotations

import os
import pathlib
import re
import secrets
from collections.abc import Sequence

import click

from orchestrator import access, errors
from orchestrator.commands import common
from orchestrator.ledger import connection

PASSWORD_BYTES = 32
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@click.command()
@click.option(
    "--passwords",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    required=True,
    help="The directory of NAME.password files; missing ones are made (mode 600).",
)
@click.option("--operator", "operators", multiple=True, help="An operator's name; repeatable.")
@click.option("--apply", is_flag=True, help="Set the users on the farm's Redis now.")
@common.json_option
def acl(passwords: pathlib.Path, operators: tuple[str, ...], *, apply: bool, as_json: bool) -> None:
    """Print the farm's Redis users as an ACL file, or apply them (--apply).

    One user for each role, one for each operator, and no default user. Printed are
    hashes; each process is given its own password file (FARM_REDIS_USER,
    FARM_REDIS_PASSWORD_FILE). --apply needs the rights of an administrator, and says
    whether the server keeps the users (aclfile) or forgets them with its next start.

    Example: farm acl --passwords /etc/farm/passwords --operator anna > users.acl
    """
    _check(operators)
    names = [*(role for role in access.ROLES if role != "operator"), *operators]
    known = {name: _password(passwords, name) for name in names}
    users = access.users(known, operators)
    kept = _apply(users, known["admin"]) if apply else None
    if as_json:
        rows = {user.name: {"role": user.role.name, "rules": user.rules()[3:]} for user in users}
        common.print_json({"users": rows, "applied": apply, "kept": kept})
    elif apply:
        ending = "" if kept else "; it forgets them with its next start: give it an aclfile"
        click.echo(f"{len(users)} users are set, the default user is off{ending}")
    else:
        click.echo(access.acl_file(users), nl=False)


def _check(operators: Sequence[str]) -> None:
    for name in operators:
        if not NAME.fullmatch(name) or name in (*access.ROLES, "default"):
            raise errors.UsageError(
                f"--operator: found {name!r}; allowed: letters, digits, - and _, and no role's name"
            )


def _password(directory: pathlib.Path, name: str) -> str:
    path = directory / f"{name}.password"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")
        found = path.read_text("utf-8").strip()
    except OSError as error:
        raise errors.HostError(f"{path}: {error}") from error
    if not found:
        raise errors.UsageError(f"{path} is empty: write a password into it, or delete it")
    return found


def _apply(users: Sequence[access.User], password: str) -> bool:
    """Set the users; then, as their ``admin``, close the default one.

    Say whether the server has written the users down.
    """
    server = connection.Server(common.redis_url())
    try:
        with server.asked(), server.client.client() as one:  # type: ignore[no-untyped-call]
            for user in users:
                one.execute_command("ACL", "SETUSER", user.name, *user.rules())
            one.execute_command("AUTH", "admin", password)
            one.execute_command("ACL", "SETUSER", "default", "reset")
            file = one.config_get("aclfile").get("aclfile")
            if file:
                one.execute_command("ACL", "SAVE")
            return bool(file)
    finally:
        server.close()
