"""The names of all Redis keys of the ledger, and what each of them means.

No other module spells a key. ``<j>`` is a journal (a season id, or ``farm``), ``<s>`` a
season, ``<h>`` a hall, ``<a>`` an attempt; every name begins with the prefix.

=====================  ======  ==========================================================
key                    type    meaning; life
=====================  ======  ==========================================================
``epoch``              string  number of the present epoch, raised by every restore; never expires
``seasons``            list    season ids in the order of their launch; never expires
``halls``              set     names of halls ever opened or offered a game; never expires
``vitals``             hash    host to the JSON of its last heartbeat; never expires
``services``           hash    service (serve, backup) to the JSON of its last report; never expires
``mirrored``           hash    ``<j>`` to the last entry known to be on disk; never expires
``checked``            hash    ``<j>`` to the server (its run id) in which ``serve`` has
                               compared it with its mirror; never expires; ``over <s>`` to the last
                               entry of a season that is archived, until its journal grows
``alarms``             hash    ``<j>`` to what ``serve`` finds wrong with it; until it is put right
``journal:<j>``        stream  the journal: ids ``<seq>-0``, fields v kind at by token data
                               op (``op`` names the append it came with); never expires
``season:<s>:results`` hash    game to ``<seq> <attempt>`` of its one result; never expires
``season:<s>:latest``  hash    game to the attempt that was given the newest token; never expires
``season:<s>:attempts`` hash   attempt to ``<token> <worker>``; never expires
``holds:<scope>``      hash    hold name to reason, of a season or ``hall:<h>``; until released
``hall:<h>``           hash    host (fixed by the first worker), worker (the last); never expires
``hall:<h>:tokens``    string  counter: the n of the last token of the hall; never expires
``hall:<h>:slot``      hash    the lease, see ``SLOT_FIELDS``; while a game is in flight
``hall:<h>:ended``     hash    attempt token season seq of the attempt given up last
``hall:<h>:offers``    hash    season to its ready game; until played or withdrawn
``hall:<h>:orders``    hash    season to the JSON order of its ready game; as ``offers``
``hall:<h>:drains``    hash    worker id to the reason why it should end
``hall:<h>:live``      string  what is going on at this moment; its own short time to live
``hall:<h>:lanes``     hash    lane to what it has (JSON); until closed
``hall:<h>:leases``    hash    lane to the lease of its test game (JSON); while it runs
``hall:<h>:due``       zset    lane by the end of its lease (Redis' ms); as ``leases``
``hall:<h>:lane-ended`` hash   lane to ``<attempt> <game> <seq>`` of the test game it ended last
``hall:<h>:lane-tokens`` string counter: the n of the last token of a lane; never expires
``tests``              hash    open test match to what claims look at (JSON); while open
``tests:specs``        hash    open test match to its specification (JSON); while open
``tests:next``         hash    open test match to the next game to deal; while open
``tests:repeats``      zset    ``<match> <game>`` to deal again, ordered by its bytes; until dealt
``tests:queue``        zset    open test matches by kind and turn, ordered by their bytes; while
                               they have games to deal
``tests:served``       hash    open test match to games dealt by its share; while open
``tests:last``         hash    open test match to the last entry of its journal; while open
``tests:mirrored``     hash    open test match to the last entry in its mirror; while open
``tests:values:<m>``   zset    data of ``test_values_dealt`` by the first iteration that test match
                               ``<m>``, a tuning, deals with it; while open
``tests:runs``         string  counter: how often a test match was opened; never expires
``batches``            hash    batch to the lease of a remote worker's games (JSON); until its
                               lease ends
``batches:due``        zset    batch by the end of its lease (Redis' ms); as ``batches``
``batches:held``       hash    access token to its batches with games that have no result
``batches:tokens``     string  counter: the n of the last token of a batch; never expires
``batches:counted``    hash    access token to the games of it that were counted; never expires
``batches:refused``    hash    access token to batches ended for a wrong result; never expires
``batches:seen``       hash    access token to the JSON of what its worker told last; never expires
``batches:speeds``     hash    access token to the JSON of how fast builds are on its machines;
                               never expires
``batches:checks``     hash    ``<match> <token>/<host>`` to the check that a worker owes and
                               its batch, ``-`` for none; until the match's end
``batches:live``       hash    batch and game to where a game stands that people may look at (JSON);
                               the next one deletes those that were not heard of for a while
``batches:sessions``   hash    SHA-256 of a browser's secret at the gateway to the token that it
                               stands for and its end (JSON); the next login deletes those over
``workers``            hash    access token of a remote worker to its facts, with the SHA-256 of
                               its secret (JSON); never expires
``plies:<a>``          stream  completed plies: ids ``0-<ply>``, field p; until archived
``record:<a>``         string  the finished game's record; until archived
``box:<b>:wants``      hash    attempt to the JSON of the seats it wants of a GPU box; until
                               answered or freed
``gpus``               hash    GPU UUID to ``<h> <a> <token> <deadline>``; until freed
``seats:<b>:<a>``      string  a GPU box's JSON answer to an attempt; until freed
``kibitz:<d>``         string  who kibitzes at desk ``<d>``; its own short time to live
``kibitz:left:<d>``    string  who has left desk ``<d>`` on purpose; seven hours
``kibitz:<d>:<a>``     hash    ply to the JSON of what the kibitzer of the desk found there,
                               ``mark`` to the number of its writes; three days
=====================  ======  ==========================================================

Only ``hall:<h>:live`` and what begins with ``kibitz:`` ever expire by time.
"""

from __future__ import annotations

import dataclasses

PREFIX = "farm:ledger:"

# Fields of hall:<h>:slot. Times are Redis' milliseconds; suspect and abort are '' if unset.
SLOT_FIELDS = (
    "season",
    "game",
    "attempt",
    "token",
    "worker",
    "host",
    "lane",
    "ttl",
    "deadline",
    "ply",
    "last_move",
    "suspect",
    "abort",
    "order",
)


def hall_scope(hall: str) -> str:
    """Return the scope of holds that concern a hall, whatever the season."""
    return f"hall:{hall}"


@dataclasses.dataclass(frozen=True)
class Keys:
    """Build key names under one prefix (tests may use their own)."""

    prefix: str = PREFIX

    @property
    def epoch(self) -> str:
        """Name the present epoch."""
        return f"{self.prefix}epoch"

    @property
    def seasons(self) -> str:
        """Name the list of launched seasons."""
        return f"{self.prefix}seasons"

    @property
    def halls(self) -> str:
        """Name the set of known halls."""
        return f"{self.prefix}halls"

    @property
    def vitals(self) -> str:
        """Name the hash of the hosts' heartbeats."""
        return f"{self.prefix}vitals"

    @property
    def services(self) -> str:
        """Name the hash of the last reports of services."""
        return f"{self.prefix}services"

    @property
    def mirrored(self) -> str:
        """Name the hash of mirrored sequence numbers."""
        return f"{self.prefix}mirrored"

    @property
    def checked(self) -> str:
        """Name the hash of the servers in which journals have been compared."""
        return f"{self.prefix}checked"

    @property
    def alarms(self) -> str:
        """Name the hash of what is wrong with journals."""
        return f"{self.prefix}alarms"

    def journal(self, journal: str) -> str:
        """Name a journal's stream."""
        return f"{self.prefix}journal:{journal}"

    def results(self, season: str) -> str:
        """Name the results of a season's games."""
        return f"{self.prefix}season:{season}:results"

    def latest(self, season: str) -> str:
        """Name the newest attempts of a season's games."""
        return f"{self.prefix}season:{season}:latest"

    def attempts(self, season: str) -> str:
        """Name the tokens of all attempts of a season."""
        return f"{self.prefix}season:{season}:attempts"

    def holds(self, scope: str) -> str:
        """Name the holds of a scope."""
        return f"{self.prefix}holds:{scope}"

    def hall(self, hall: str) -> str:
        """Name what is known of a hall."""
        return f"{self.prefix}hall:{hall}"

    def tokens(self, hall: str) -> str:
        """Name a hall's token counter."""
        return f"{self.hall(hall)}:tokens"

    def slot(self, hall: str) -> str:
        """Name a hall's lease."""
        return f"{self.hall(hall)}:slot"

    def ended(self, hall: str) -> str:
        """Name the attempt of a hall that was given up last."""
        return f"{self.hall(hall)}:ended"

    def offers(self, hall: str) -> str:
        """Name a hall's ready games."""
        return f"{self.hall(hall)}:offers"

    def orders(self, hall: str) -> str:
        """Name the orders of a hall's ready games."""
        return f"{self.hall(hall)}:orders"

    def drains(self, hall: str) -> str:
        """Name a hall's drain wishes."""
        return f"{self.hall(hall)}:drains"

    def live(self, hall: str) -> str:
        """Name what is shown of a hall at this moment."""
        return f"{self.hall(hall)}:live"

    def lanes(self, hall: str) -> str:
        """Name a hall's lanes."""
        return f"{self.hall(hall)}:lanes"

    def leases(self, hall: str) -> str:
        """Name the leases of a hall's lanes."""
        return f"{self.hall(hall)}:leases"

    def due(self, hall: str) -> str:
        """Name the lanes of a hall by the end of their leases."""
        return f"{self.hall(hall)}:due"

    def lane_ended(self, hall: str) -> str:
        """Name the test games that a hall's lanes ended last."""
        return f"{self.hall(hall)}:lane-ended"

    def lane_tokens(self, hall: str) -> str:
        """Name the counter of a hall's lane tokens."""
        return f"{self.hall(hall)}:lane-tokens"

    def tests(self, what: str = "") -> str:
        """Name the open test matches, or one thing that is kept of each."""
        return f"{self.prefix}tests:{what}" if what else f"{self.prefix}tests"

    def batches(self, what: str = "") -> str:
        """Name the batches of remote workers, or one thing that is kept of them."""
        return f"{self.prefix}batches:{what}" if what else f"{self.prefix}batches"

    @property
    def workers(self) -> str:
        """Name the hash of the access tokens of remote workers."""
        return f"{self.prefix}workers"

    def plies(self, attempt: str) -> str:
        """Name an attempt's ply stream."""
        return f"{self.prefix}plies:{attempt}"

    def record(self, attempt: str) -> str:
        """Name an attempt's finished record."""
        return f"{self.prefix}record:{attempt}"

    def wants(self, box: str) -> str:
        """Name what is wanted of a GPU box."""
        return f"{self.prefix}box:{box}:wants"

    @property
    def gpus(self) -> str:
        """Name the hash of who has which GPU."""
        return f"{self.prefix}gpus"

    def seats(self, box: str, attempt: str) -> str:
        """Name a GPU box's answer to an attempt."""
        return f"{self.prefix}seats:{box}:{attempt}"

    def kibitz(self, what: str) -> str:
        """Name a desk of kibitzers, or what its kibitzer found in an attempt's positions."""
        return f"{self.prefix}kibitz:{what}"
