"""The metrics' names, kinds, labels and help: one table, for the exporter and the docs.

Names follow Prometheus' conventions: prefix ``farm_``, base units, ``_total`` on counters
alone, ``_info`` gauges that are 1. Labels are bounded: seasons (the latest few, and what
goes on), events, engines of a roster, halls, hosts; never a game's id.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from prometheus_client import core

Kind: TypeAlias = Literal["gauge", "counter", "histogram"]

SEASON: Final = ("season",)
EVENT: Final = ("season", "event")
ENGINE: Final = ("season", "event", "engine")
HALL: Final = ("hall",)
SIDE: Final = ("hall", "side", "engine")
HOST: Final = ("host",)
GPU: Final = ("host", "gpu", "uuid")
DESK: Final = ("desk",)


@dataclasses.dataclass(frozen=True)
class Family:
    """One metric: its kind, its labels, and what it says."""

    kind: Kind
    labels: tuple[str, ...]
    help: str


def _of(kind: Kind, labels: tuple[str, ...], **texts: str) -> dict[str, Family]:
    return {f"farm_{name}": Family(kind, labels, text) for name, text in texts.items()}


FARM: Final = {
    **_of("gauge", ("version", "schema"), build_info="The exporter's version; always 1."),
    **_of(
        "gauge",
        (),
        redis_up="Whether Redis answered this scrape.",
        redis_time_seconds="Redis' time of day, by which the farm counts.",
        redis_ping_seconds="How long Redis took to tell its time of day.",
        redis_durable="Whether the settings that can be seen lose no acknowledged write.",
        redis_aof_write_ok="Whether Redis' last write to its append-only file succeeded.",
        redis_aof_rewrite_ok="Whether Redis' last rewrite of its append-only file succeeded.",
        redis_aof_rewrite_seconds="How long the present rewrite has run, 0 without one.",
        redis_certificate_expiry_timestamp_seconds="When Redis' TLS certificate ends.",
        redis_aof_size_bytes="Size of Redis' append-only file.",
        redis_memory_used_bytes="Memory that Redis uses.",
        redis_memory_limit_bytes="Redis' maxmemory, 0 without one.",
        redis_clients="Clients connected to Redis.",
        redis_start_timestamp_seconds="When Redis was started.",
        ledger_epoch="The epoch, raised by every restore.",
        archive_disk_free_bytes="Free space on the archive's file system, seen by the exporter.",
        archive_disk_size_bytes="Size of the archive's file system, seen by the exporter.",
        serve_clock_skew_seconds="How far the clock of its host is ahead of Redis'.",
        serve_last_beat_timestamp_seconds="When `farm serve` last reported; 0: never.",
        backup_last_success_timestamp_seconds="When the last backup was complete; 0: never.",
        backup_last_offsite_timestamp_seconds="When one was last taken off its host; 0: never.",
        backup_failed="Whether the last backup, or its way off the host, failed.",
        backup_duration_seconds="How long the last backup took.",
        backup_journal_entries="Entries of all journals in the last complete backup.",
        notify_last_beat_timestamp_seconds="When `farm notify run` was last at work.",
        notices_waiting="Notices that are not delivered, or not acknowledged yet.",
        notices_failed="Notices that a channel did not take when they were tried last.",
        scrape_duration_seconds="How long the exporter computed for this scrape.",
    ),
    **_of(
        "counter",
        (),
        redis_aof_delayed_writes_total="Writes of Redis that a slow disk delayed.",
        scrape_errors_total="Parts of the ledger, while Redis answers, that could not be read.",
    ),
    **_of(
        "gauge",
        ("epoch",),
        ledger_entries="Entries of all journals in Redis; never fewer within an epoch.",
    ),
    **_of("gauge", ("version", "host"), serve_info="The build of `farm serve`, and where; 1."),
    **_of(
        "gauge",
        ("season", "reason"),
        season_out_of_service="1 for a season nobody may go on with: damaged, lost, disk.",
    ),
    **_of("gauge", ("season", "hall"), feed_followed="1 for the season that the feeds show."),
    **_of(
        "gauge", ("file",), feed_last_write_timestamp_seconds="When a broadcast file was written."
    ),
}
SEASONS: Final = {
    **_of(
        "gauge",
        SEASON,
        season_launch_timestamp_seconds="When the season was launched.",
        season_progress_ratio="Finished games of all expected ones.",
        season_games_expected="Games the season will have, as far as it is known.",
        season_end_timestamp_seconds="Estimated end; the real one when it is over.",
        season_journal_entries="Entries in the season's journal.",
        season_mirror_lag_entries="Entries that are not known to be in the mirror on disk.",
        season_decisions_open="Questions that wait for the organizers.",
        season_flags_open="Engines that are flagged for a hidden book.",
        season_hosts_away="Hosts that an operator has declared away.",
        season_next_gate_timestamp_seconds="When the next gate opens by itself.",
    ),
    **_of(
        "gauge",
        ("season", "hall"),
        season_ready_since_timestamp_seconds="Since when the hall's next game could be begun.",
    ),
    **_of("gauge", ("season", "name", "hall"), season_info="The season's name and hall; 1."),
    **_of("gauge", ("season", "status"), season_status="1 for the status the season is in."),
    **_of(
        "counter",
        SEASON,
        pauses_total="Pauses of the season.",
        holds_total="Times at which the farm itself held the season.",
    ),
    **_of(
        "gauge",
        EVENT,
        event_progress_ratio="Finished games of the event's expected ones.",
        event_games_expected="Games the event will have, as far as it is known.",
        event_end_timestamp_seconds="Estimated end of an event that has begun, else of its games.",
    ),
    **_of("gauge", ("season", "event", "status"), event_status="1 for the status it is in."),
    **_of(
        "counter",
        ("season", "event", "result", "termination"),
        games_finished_total="Finished games by result and by how they ended, annulled ones too.",
    ),
    **_of(
        "counter",
        ("season", "event", "scenario"),
        interruptions_total="Interrupted attempts by what the rules made of them.",
    ),
    **_of("histogram", EVENT, game_duration_seconds="How long finished games took."),
}
ENGINES: Final = {
    **_of(
        "counter",
        ENGINE,
        engine_games_total="Finished games of the engine, annulled ones too.",
        engine_crashes_total="Games the engine lost by a crash or a stall.",
        engine_time_losses_total="Games the engine lost on time.",
        engine_illegal_moves_total="Games the engine lost by an illegal move.",
        engine_time_used_seconds_total="Time on the engine's clock that it used.",
        engine_time_given_seconds_total="Time that its clock was given, increments included.",
    ),
    **_of(
        "gauge",
        ENGINE,
        engine_points="Points in the event.",
        engine_rank="Place in the event's table.",
        engine_crashes_left="Crashes until an engine that has crashed is disqualified.",
        engine_excluded="Whether the engine was disqualified or withdrawn.",
    ),
}
HALLS: Final = {
    **_of(
        "gauge",
        HALL,
        hall_playing="Whether a game is in flight in the hall.",
        hall_held="Whether a hold forbids new games in the hall.",
        hall_drained="Whether it stands still because its worker was drained.",
        lease_age_seconds="Time since the lease of the game in flight was renewed.",
        lease_ttl_seconds="After so long without a renewal the lease is suspected.",
        lease_overdue="Whether the lease has run out.",
        game_ply="Plies of the game in flight, book included.",
        game_start_timestamp_seconds="When the game in flight began.",
        game_last_move_timestamp_seconds="When the game in flight saw its last move.",
        game_draw_rule_plies="Plies until a draw rule can end the game at the earliest.",
        game_win_rule_plies="Plies until the win rule can end the game at the earliest.",
    ),
    **_of("gauge", ("hall", "season", "event", "white", "black"), game_info="Who plays; 1."),
    **_of("gauge", ("queue",), queue_length="Rings that wait in a hall's queue."),
    **_of(
        "counter",
        ("queue",),
        messages_dropped_total="Messages that were none of the farm's, by hall's queue or `other`.",
    ),
    **_of(
        "gauge",
        SIDE,
        engine_clock_seconds="Time left, as of its last word.",
        engine_thinking="Whether it is this side's turn.",
        engine_eval_pawns="Its evaluation from White's side; mates are 100.",
        engine_depth="Depth of its search in plies.",
        engine_nodes_per_second="Speed of its search.",
        engine_hash_full_ratio="Part of its hash that is full.",
    ),
    **_of(
        "histogram",
        HALL,
        move_time_seconds="Time that moves took on their engine's clock.",
        move_overhead_seconds="The referee's own time between two moves.",
        move_wait_seconds="Time between a move and the start of the other clock.",
        move_lag_seconds="Network time of a remote engine's moves; never charged.",
    ),
}
LANES: Final = {
    **_of(
        "gauge",
        ("hall", "lane"),
        lane_playing="Whether a test game is in flight in the lane.",
        lane_lease_overdue_seconds="How long ago the lease of the lane's game ran out, else 0.",
    ),
    **_of(
        "gauge",
        HALL,
        hall_test_games_waiting="Games of open test matches that the hall's lanes may play.",
    ),
    **_of(
        "gauge",
        ("state",),
        worker_tokens="Access tokens of remote workers: valid, ended, revoked, or condemned.",
    ),
}
HOSTS: Final = {
    **_of(
        "gauge",
        HOST,
        host_last_seen_timestamp_seconds="When the host's last heartbeat came.",
        host_drained="Whether its hall's worker was drained: then it is silent on purpose.",
        host_cpus="Cores of the host.",
        host_cpu_ratio="Use of all its cores.",
        host_foreign_cpu_ratio="Use of the engines' cores by others than the hall.",
        host_memory_size_bytes="Its memory.",
        host_memory_available_bytes="Its memory that is free for engines.",
        host_swap_used_bytes="Its swap in use.",
        host_disk_free_bytes="Free space where the hall's files are.",
        host_disk_size_bytes="Size of the file system where the hall's files are.",
        host_temperature_celsius="Its hottest sensor.",
        host_frequency_hertz="Mean frequency of the engines' cores.",
        host_clock_offset_seconds="How far its time of day is from the time servers'.",
        host_clock_skew_seconds="How far its time of day is ahead of Redis'.",
        host_clock_synchronized="Whether its kernel says that the time of day is kept.",
        host_quiet="Whether governor, swap and foreign load are as clocked games want them.",
        host_bench_ratio="Speed of its last reference bench against the recorded one.",
        host_spooled_games="Finished games on its disk that the archive does not have.",
        host_refused_games="Finished games on its disk that the ledger did not accept.",
    ),
    **_of("counter", HOST, host_throttles_total="Times a core was slowed down by heat."),
    **_of("gauge", ("host", "role", "version", "cpu", "kernel", "governor"), host_info="1."),
    **_of(
        "gauge",
        GPU,
        gpu_utilization_ratio="Use of the GPU.",
        gpu_memory_used_bytes="Memory of the GPU in use.",
        gpu_memory_size_bytes="Memory of the GPU.",
        gpu_temperature_celsius="Temperature of the GPU.",
        gpu_power_watts="Power that the GPU draws.",
        gpu_sm_clock_hertz="Clock of the GPU's processors.",
        gpu_throttled="Whether the GPU is slowed down by heat or power.",
    ),
}
KIBITZERS: Final = {
    **_of(
        "gauge",
        DESK,
        kibitzer_seated="Whether a kibitzer has the desk; absent after one left.",
    ),
    **_of(
        "gauge",
        ("hall", "desk"),
        kibitzer_words="How often the desk's kibitzer has told something of the game in flight.",
    ),
}
FAMILIES: Final = {**FARM, **SEASONS, **ENGINES, **HALLS, **LANES, **HOSTS, **KIBITZERS}
_MADE: Final = {
    "gauge": core.GaugeMetricFamily,
    "counter": core.CounterMetricFamily,
    "histogram": core.HistogramMetricFamily,
}
Buckets: TypeAlias = list[tuple[str, float]]


class Sheet:
    """The samples of one scrape, kept by family; what was never set is not there."""

    def __init__(self) -> None:
        """Start empty."""
        self._made: dict[str, core.Metric] = {}

    def _family(self, name: str) -> tuple[core.Metric, Family]:
        family = FAMILIES[name]
        if name not in self._made:
            shown = name.removesuffix("_total") if family.kind == "counter" else name
            made = _MADE[family.kind](shown, family.help, labels=family.labels)
            self._made[name] = made
        return self._made[name], family

    def set(self, name: str, value: float | None, /, **labels: str) -> None:
        """Set a sample; None is no sample. Raise ``KeyError`` for labels that are not its."""
        if value is None:
            return
        made, family = self._family(name)
        assert isinstance(made, core.GaugeMetricFamily | core.CounterMetricFamily)
        made.add_metric([labels.pop(label) for label in family.labels], float(value))
        if labels:
            raise KeyError(f"{name} has no label {', '.join(labels)}")

    def buckets(self, name: str, buckets: Buckets, total: float, /, **labels: str) -> None:
        """Set a histogram: counts up to each bound, and the sum."""
        made, family = self._family(name)
        assert isinstance(made, core.HistogramMetricFamily)
        made.add_metric([labels[label] for label in family.labels], buckets, sum_value=total)

    def take(self, other: Sheet) -> None:
        """Take all samples of another sheet of this scrape."""
        for name, metric in other._made.items():
            self._family(name)[0].samples += metric.samples

    def families(self) -> Iterator[core.Metric]:
        """Yield what was set, in the table's order."""
        return (self._made[name] for name in FAMILIES if name in self._made)
