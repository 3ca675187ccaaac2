"""Who may do what in the farm's Redis: one user a role, no default user.

Each role is given the keys and commands its work needs, and no more (``docs/security.md``
has the table in words). Invariants:

* nobody but ``admin`` configures the server, empties it or reads its users;
* nobody but ``operator`` and ``admin`` can delete, replace, trim or rename a season's journal
  or take an entry out of it. The rules know commands, not their words: who may add an entry
  could still cut by ``XADD``'s own MAXLEN, which the mirror and ``farm fsck`` show;
* ``broadcast`` and ``exporter`` can write nothing, ``kibitzer`` nothing but its own words,
  ``gateway`` nothing but batches and results of test matches, and what authors submit;
* passwords stand here as SHA-256 only, as Redis keeps them;
* the default user is off, so nobody logs in as it, and may do everything: Redis replays its
  append-only file as the default user, and up to 8.2 (Valkey up to 9.1.1) checks that user's
  rules again at each EXEC. Without them it drops every script that wrote more than once.

Rules are those of Redis 7 (``%R~``). Celery's remote control and events are channels: operators
give orders (``celery inspect``, ``control``) and listen, workers listen and publish events. Nobody
else has a channel, and rings are queues.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

from orchestrator.contract import bells
from orchestrator.ledger import keys

READ = (
    *("get", "mget", "strlen", "exists", "type", "ttl", "pttl", "hget", "hmget", "hgetall"),
    *(
        "hkeys",
        "hvals",
        "hlen",
        "hexists",
        "hscan",
        "llen",
        "lrange",
        "smembers",
        "scard",
        "sismember",
    ),
    *("xrange", "xrevrange", "xread", "xlen", "zcard", "zrange", "zrevrangebyscore"),
)
CONNECT = ("auth", "hello", "ping", "select", "echo", "quit", "client|setinfo", "acl|whoami")
# Redis replays its append-only file as this user, see above. Off: nobody can log in as it.
DEFAULT = ("off", "~*", "&*", "+@all")
CONNECT_6 = tuple(word for word in CONNECT if "setinfo" not in word)  # Redis 7.0 has it not
ASK = ("info", "time", "multi", "exec", "discard")
SCRIPTS = ("eval", "evalsha", "script|load", "script|exists")
LEDGER = (
    *("setnx", "incr", "hset", "hsetnx", "hdel", "rpush", "sadd", "srem"),
    *("hincrby", "incrby", "decr", "lpop", "lrem", "persist", "xadd"),
)
REPLACE = ("set", "del", "expire", "pexpire")  # what would end a journal: not on those
BROKER = (
    *("lpush", "rpop", "brpop", "lrem", "zadd", "zrem", "zrangebyscore", "zrangebylex", "srem"),
    *("watch", "unwatch"),
)
GATEWAY = (
    *("get", "hget", "hmget", "hgetall", "xrevrange", "zrangebyscore", "zrangebylex", "time"),
    *("zrevrangebyscore", "hset", "hdel", "hincrby", "incr", "zadd", "zrem", "xadd"),
)
KIBITZ = (
    *("get", "hget", "hgetall", "mget", "xrange", "time", "multi", "exec", "discard"),
    *("set", "del", "hset", "hincrby", "pexpire"),
)
# Whoever may listen may hear all: a subscription to a pattern must name the rule's own words, and
# Celery's pattern holds the number of the database. What is published is no secret.
LISTEN = "(&* +subscribe +psubscribe +unsubscribe +punsubscribe)"
ORDERS = f"(&{bells.KEYS}/*.celery.pidbox +publish)"
EVENTS = f"(&{bells.KEYS}/*.celeryev/* +publish)"
ROLES = (
    "admin",
    "orchestrator",
    "worker",
    "operator",
    "broadcast",
    "exporter",
    "kibitzer",
    "gateway",
)


@dataclasses.dataclass(frozen=True)
class Role:
    """What one kind of user may touch: key patterns, channels, commands."""

    name: str
    purpose: str
    keys: tuple[str, ...]
    channels: tuple[str, ...]
    commands: tuple[str, ...]
    besides: tuple[str, ...] = ()  # selectors: commands on keys of their own

    def rules(self) -> tuple[str, ...]:
        """Return the rules as Redis reads them, without name and password."""
        keys_and_channels = ("resetkeys", *self.keys, "resetchannels", *self.channels)
        return (*keys_and_channels, "-@all", *self.commands, *self.besides)


def roles() -> dict[str, Role]:
    """Return all roles by name."""
    names = keys.Keys()
    ledger, served = (
        f"~{names.prefix}*",
        tuple(f"%R~{key}" for key in (names.mirrored, names.alarms)),
    )
    reads, broker = f"%R~{names.prefix}*", f"~{bells.KEYS}*"
    play = tuple(f"~{pattern}" for pattern in _of_hall(names))
    journals = f"~{names.journal('*')}"
    seen = ("+info", "+config|get", "+acl|whoami", "+acl|dryrun")
    steer = ("+@all", "-@admin", "-@dangerous", *seen)
    all_roles = (
        Role("admin", "sets the server up; used by no process", ("~*",), ("&*",), ("+@all",)),
        Role(
            "orchestrator",
            "decides, archives, rings the halls",
            (ledger, broker),
            (),
            _allow(*READ, *LEDGER, *SCRIPTS, *BROKER, *ASK, "config|get", "acl|dryrun", *CONNECT_6),
            (
                f"(~{names.journal('test:*')} +xtrim +del)",  # test matches' end
                _replacing(broker, *(f"~{pattern}" for pattern in _beside_journals(names))),
            ),
        ),
        Role(
            "worker",
            "plays: claims, plies, records of its halls",
            (*play, *served, broker),
            (),
            _allow(*READ, *LEDGER, *SCRIPTS, *BROKER, *ASK, *CONNECT_6),
            (_replacing(broker, *(key for key in play if key != journals)), LISTEN, EVENTS),
        ),
        Role(
            "operator",
            "a person: steers, corrects, restores",
            (ledger, broker),
            (),
            steer,
            (LISTEN, ORDERS),
        ),
        Role("broadcast", "shows", (reads,), (), _allow(*READ, *ASK, *CONNECT_6)),
        Role(
            "exporter",
            "measures",
            (reads, f"%R~{bells.KEYS}*"),
            (),
            _allow(*READ, *ASK, *CONNECT_6),
        ),
        Role(
            "kibitzer",
            "follows the game in flight, tells what it thinks of it",
            (
                *(f"%R~{name}" for name in (names.slot("*"), names.plies("*"), names.vitals)),
                f"~{names.kibitz('*')}",
            ),
            (),
            _allow(*KIBITZ, *CONNECT_6),
        ),
        _gateway(names),
    )
    return {role.name: role for role in all_roles}


def _gateway(names: keys.Keys) -> Role:
    """Return the role that faces the internet: batches of test matches, and nothing else.

    Redis holds a script's keys against the rule that allows EVAL, and each of its commands against
    all rules: so scripts may name keys which they may only read.
    """
    written = (
        *(names.batches(), names.batches("*"), names.journal("test:*")),
        *(names.tests(what) for what in ("next", "repeats", "queue", "served", "last")),
        *(names.tests(what) for what in ("submitted", "orders")),
    )
    read = (names.epoch, *(names.tests(what) for what in ("", "specs", "mirrored", "values:*")))
    scripted = (f"~{name}" for name in (*written, *read))
    return Role(
        "gateway",
        "deals batches of test games to remote workers, records their results",
        (*(f"~{name}" for name in written), *(f"%R~{name}" for name in (*read, names.workers))),
        (),
        _allow(*GATEWAY, "script|load", "script|exists", *CONNECT_6),
        (f"({' '.join((*scripted, '+eval', '+evalsha'))})",),
    )


def _allow(*commands: str) -> tuple[str, ...]:
    return tuple(f"+{command}" for command in dict.fromkeys(commands))


def _replacing(*patterns: str) -> str:
    """Return a selector: what would end a journal, on keys that are none."""
    return f"({' '.join((*patterns, *_allow(*REPLACE)))})"


def _beside_journals(names: keys.Keys) -> tuple[str, ...]:
    """Return the patterns of all keys of the ledger but the journals."""
    own = (names.mirrored, names.alarms, names.services, names.wants("*"), names.kibitz("*"))
    remote = (names.workers, names.batches(), names.batches("*"))
    return (*(key for key in _of_hall(names) if key != names.journal("*")), *own, *remote)


def _of_hall(names: keys.Keys) -> tuple[str, ...]:
    """Return the keys that playing writes, and those its scripts name."""
    return (
        *(names.epoch, names.seasons, names.halls, names.vitals, names.checked),
        *(names.journal("*"), names.holds("*")),
        *(names.results("*"), names.latest("*"), names.attempts("*")),
        *(names.hall("*"), names.plies("*"), names.record("*")),
        *(names.wants("*"), names.gpus, names.seats("*", "*")),
        *(names.tests(), names.tests("*")),
    )


@dataclasses.dataclass(frozen=True)
class User:
    """A Redis user: a role under a name, and the hashes of its passwords.

    There are two of them while a password is rotated: processes take the new one, one by one.
    """

    name: str
    role: Role
    passwords_sha256: tuple[str, ...]

    def rules(self) -> tuple[str, ...]:
        """Return all of the user's rules, from nothing."""
        passwords = (f"#{digest}" for digest in self.passwords_sha256)
        return ("reset", "on", *passwords, *self.role.rules())

    def line(self) -> str:
        """Return the user's line of an ACL file."""
        return " ".join(("user", self.name, *self.rules()[1:]))


def users(passwords: Mapping[str, Sequence[str]], operators: Sequence[str]) -> list[User]:
    """Return a user for each role and each operator; ``passwords`` by user name, each one valid."""
    by_name = roles()
    named = [(name, by_name[name]) for name in ROLES if name != "operator"]
    named += [(name, by_name["operator"]) for name in operators]
    return [User(name, role, tuple(map(sha256, passwords[name]))) for name, role in named]


def sha256(password: str) -> str:
    """Return what Redis keeps of a password."""
    return hashlib.sha256(password.encode()).hexdigest()


def acl_file(users_listed: Sequence[User]) -> str:
    """Return the text of Redis' ``aclfile``; nobody can log in as the default user."""
    lines = [f"user default {' '.join(DEFAULT)}", *(user.line() for user in users_listed)]
    return "".join(f"{line}\n" for line in lines)
