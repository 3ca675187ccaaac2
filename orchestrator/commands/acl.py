"""``farm acl``: the Redis users of the farm, printed as an ACL file or applied to a server.

Passwords live in files of a directory, one a user, for this user's eyes only; what is
printed has their SHA-256 only. Missing ones are made. While passwords are rotated, the old one of
a user lies beside the new one as NAME.previous, and the server takes both.
"""

from __future__ import annotations

import os
import pathlib
import re
import secrets
from collections.abc import Sequence

import click

from orchestrator.commands import common
from orchestrator.common import bounds, errors
from orchestrator.ledger import connection
from orchestrator.ops import acl as ops_acl

PASSWORD_BYTES = 32
VAULT = "$ANSIBLE_VAULT;"  # how an encrypted file begins
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
@click.option(
    "--rotate", is_flag=True, help="Make new passwords; the old ones stay valid beside them."
)
@click.option("--finish", is_flag=True, help="End a rotation: forget the old passwords.")
@common.json_option
def acl(
    passwords: pathlib.Path,
    operators: tuple[str, ...],
    *,
    apply: bool,
    rotate: bool,
    finish: bool,
    as_json: bool,
) -> None:
    """Print the farm's Redis users as an ACL file, or apply them (--apply).

    One user for each role, one for each operator, and no default user. Only hashes are printed;
    each process has its own password file (FARM_REDIS_USER, FARM_REDIS_PASSWORD_FILE). --apply
    needs the rights of an administrator, and says whether the server keeps the users (aclfile) or
    forgets them with its next start.

    --rotate makes a new password for each user; the old one (NAME.previous) stays valid until
    --finish, so that every process can change over while a game plays
    (docs/how-to/rotate-secrets.md).

    Example: farm acl --passwords /etc/farm/passwords --operator anna > users.acl
    """
    _check(operators)
    names = [*(role for role in ops_acl.ROLES if role != "operator"), *operators]
    if rotate and finish:
        raise errors.UsageError("--rotate begins what --finish ends: give one of them")
    if rotate:
        _rotate(passwords, names)
    if finish:
        _finish(passwords)
    by_user = {name: _passwords(passwords, name) for name in names}
    users = ops_acl.users(by_user, operators)
    kept = _apply(users, by_user["admin"][0]) if apply else None
    if as_json:
        rows = {user.name: {"role": user.role.name, "rules": user.rules()[3:]} for user in users}
        common.print_json({"users": rows, "applied": apply, "kept": kept})
    elif apply:
        ending = "" if kept else "; it forgets them with its next start: give it an aclfile"
        click.echo(f"{len(users)} users are set, the default user is off{ending}")
    else:
        click.echo(ops_acl.acl_file(users), nl=False)


def _check(operators: Sequence[str]) -> None:
    for name in operators:
        if not NAME.fullmatch(name) or name in (*ops_acl.ROLES, "default"):
            raise errors.UsageError(
                f"--operator: found {name!r}; allowed: letters, digits, - and _, and no role's name"
            )


def _rotate(directory: pathlib.Path, names: Sequence[str]) -> None:
    """Set each user's password aside, so that a new one is made in its place."""
    begun = sorted(path.name for path in directory.glob("*.previous"))
    if begun:
        raise errors.RefusedError(
            f"a rotation is under way, {begun[0]} is still there: finish it first"
            " (docs/how-to/rotate-secrets.md), or delete the *.previous files"
        )
    for name in names:
        path = directory / f"{name}.password"
        if path.exists():
            _read(path)
            path.rename(path.with_suffix(".previous"))


def _finish(directory: pathlib.Path) -> None:
    for path in directory.glob("*.previous"):
        path.unlink()


def _passwords(directory: pathlib.Path, name: str) -> list[str]:
    """Return the valid passwords of a user: its own, and during a rotation the one before."""
    previous = directory / f"{name}.previous"
    return [_password(directory, name), *([_read(previous)] if previous.exists() else [])]


def _password(directory: pathlib.Path, name: str) -> str:
    path = directory / f"{name}.password"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")
    except OSError as error:
        raise errors.HostError(f"{path}: {errors.reason(error)}") from error
    return _read(path)


def _read(path: pathlib.Path) -> str:
    try:
        password = bounds.text(path, bounds.SECRET_BYTES).strip()
    except bounds.DAMAGED as error:
        raise errors.HostError(f"{path}: {errors.reason(error)}") from error
    if not password:
        raise errors.UsageError(f"{path} is empty: write a password into it, or delete it")
    if password.startswith(VAULT):
        raise errors.UsageError(
            f"{path} is encrypted by ansible-vault: `ansible-vault decrypt` the folder first,"
            " and encrypt it again afterwards"
        )
    return password


def _apply(users: Sequence[ops_acl.User], password: str) -> bool:
    """Set the users; then, as their ``admin``, close the default one.

    Say whether the server has written the users down.
    """
    server = connection.Server(common.redis_url())
    try:
        with server.asked(), server.client.client() as client:  # type: ignore[no-untyped-call]
            for user in users:
                client.execute_command("ACL", "SETUSER", user.name, *user.rules())
            client.execute_command("AUTH", "admin", password)
            client.execute_command("ACL", "SETUSER", "default", "reset", *ops_acl.DEFAULT)
            file = client.config_get("aclfile").get("aclfile")
            if file:
                client.execute_command("ACL", "SAVE")
            return bool(file)
    finally:
        server.close()
