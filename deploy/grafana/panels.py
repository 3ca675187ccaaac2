"""What the dashboards show: one table of panels, each with its unit, queries and words.

``J`` in a query stands for the matchers of every metric of the farm's exporter, ``S`` for
those with a season too, ``H`` with a hall. Nothing is written over a missing series: a
panel without data says so.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["stat", "lines", "table", "states"]

MATCHERS = {
    "J": 'job=~"$job",instance=~"$instance"',
    "S": 'job=~"$job",instance=~"$instance",season=~"$season"',
    "H": 'job=~"$job",instance=~"$instance",hall=~"$hall"',
    "T": 'job=~"$job",instance=~"$instance",host=~"$host"',
}


@dataclasses.dataclass(frozen=True)
class Query:
    """One query and the legend of its series."""

    expr: str
    legend: str = ""

    @property
    def text(self) -> str:
        """Return the query with its matchers."""
        text = self.expr
        for short, matchers in MATCHERS.items():
            text = text.replace(f"{{{short}}}", f"{{{matchers}}}")
            text = text.replace(f"{{{short},", f"{{{matchers},")
        return text


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel: what it shows, in which unit (Grafana's names), from which queries."""

    title: str
    description: str
    kind: Kind
    unit: str
    queries: tuple[Query, ...]
    width: int = 6
    height: int = 8


@dataclasses.dataclass(frozen=True)
class Board:
    """A dashboard: rows of panels, and the variables it needs besides job and instance."""

    uid: str
    title: str
    description: str
    variables: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]


_TIME_USE = "{} / {}".format(
    "sum by (engine) (farm_engine_time_used_seconds_total{S})",
    "sum by (engine) (farm_engine_time_given_seconds_total{S})",
)


def _quantile(share: float, by: str, buckets: str) -> str:
    return f"histogram_quantile({share:g}, sum by ({by}, le) ({buckets}))"


def _stat(title: str, description: str, unit: str, expr: str, legend: str = "") -> Panel:
    return Panel(title, description, "stat", unit, (Query(expr, legend),), width=6, height=4)


def _lines(title: str, description: str, unit: str, *queries: tuple[str, str]) -> Panel:
    told = tuple(Query(expr, legend) for expr, legend in queries)
    return Panel(title, description, "lines", unit, told, width=12)


def _table(title: str, description: str, unit: str, expr: str) -> Panel:
    return Panel(title, description, "table", unit, (Query(expr),), width=12)


SEASON = Board(
    "farm-season",
    "Farm: season",
    "Where the season is, when it ends, who leads.",
    ("season",),
    (
        (
            "Where are we",
            (
                _stat(
                    "Progress",
                    "Finished games of all expected ones.",
                    "percentunit",
                    "farm_season_progress_ratio{S}",
                    "{{season}}",
                ),
                _stat(
                    "Games played",
                    "Finished games of the season.",
                    "short",
                    "sum by (season) (farm_games_finished_total{S})",
                    "{{season}}",
                ),
                _stat(
                    "Estimated end",
                    "When the last game ends, at the pace so far, breaks included.",
                    "dateTimeAsLocal",
                    "farm_season_end_timestamp_seconds{S} * 1000",
                    "{{season}}",
                ),
                _stat(
                    "Open questions",
                    "Questions that wait for the organizers (`farm season decisions`).",
                    "short",
                    "farm_season_decisions_open{S}",
                    "{{season}}",
                ),
                _stat(
                    "Status",
                    "running, waiting (a gate or a break), paused, held by the farm, finished,"
                    " abandoned.",
                    "string",
                    "farm_season_status{S} == 1",
                    "{{status}}",
                ),
                _stat(
                    "Interruptions",
                    "Interrupted attempts of the season, whatever the rules made of them.",
                    "short",
                    "sum by (season) (farm_interruptions_total{S})",
                    "{{season}}",
                ),
                _stat(
                    "Crashes",
                    "Games that were lost by a crash or a stall.",
                    "short",
                    "sum by (season) (farm_engine_crashes_total{S})",
                    "{{season}}",
                ),
                _stat(
                    "Pauses",
                    "How often the season was paused.",
                    "short",
                    "farm_pauses_total{S}",
                    "{{season}}",
                ),
                _stat(
                    "Holds",
                    "How often the farm itself held the season.",
                    "short",
                    "farm_holds_total{S}",
                    "{{season}}",
                ),
                _stat(
                    "Games expected",
                    "As far as it is known.",
                    "short",
                    "farm_season_games_expected{S}",
                    "{{season}}",
                ),
                _stat(
                    "Launched",
                    "When the season was launched.",
                    "dateTimeAsLocal",
                    "farm_season_launch_timestamp_seconds{S} * 1000",
                    "{{season}}",
                ),
                _stat(
                    "Flagged engines",
                    "Flagged for a hidden book (`farm engine flags`).",
                    "short",
                    "farm_season_flags_open{S}",
                    "{{season}}",
                ),
                _stat(
                    "Hosts away",
                    "Declared away by an operator.",
                    "short",
                    "farm_season_hosts_away{S}",
                    "{{season}}",
                ),
                _stat(
                    "Next gate opens",
                    "By itself; no data where none is set.",
                    "dateTimeAsLocal",
                    "farm_season_next_gate_timestamp_seconds{S} * 1000",
                    "{{season}}",
                ),
                _stat(
                    "Waits for its hall",
                    "Since its next game could be begun; no data while its hall plays.",
                    "s",
                    "time() - farm_season_ready_since_timestamp_seconds{S}",
                    "{{season}}",
                ),
                _table("Seasons", "Names and halls.", "string", "farm_season_info{S}"),
            ),
        ),
        (
            "Events",
            (
                _lines(
                    "Events",
                    "How much of each event is played.",
                    "percentunit",
                    ("farm_event_progress_ratio{S}", "{{event}}"),
                ),
                _table(
                    "Status of events",
                    "Where each event is.",
                    "string",
                    "farm_event_status{S} == 1",
                ),
                _lines(
                    "Games expected in each event",
                    "As far as it is known.",
                    "short",
                    ("farm_event_games_expected{S}", "{{event}}"),
                ),
                _table(
                    "Estimated end of events",
                    "At the pace so far; of events that have begun.",
                    "dateTimeAsLocal",
                    "farm_event_end_timestamp_seconds{S} * 1000",
                ),
                _table(
                    "Standings",
                    "Points in each event that has begun.",
                    "short",
                    "sort_desc(sum by (event, engine) (farm_engine_points{S}))",
                ),
                _table(
                    "How games end",
                    "Finished games by result and by how they ended, annulled ones too.",
                    "short",
                    "sum by (event, result, termination) (farm_games_finished_total{S})",
                ),
                _table(
                    "Interruptions by scenario",
                    "What the rules made of interrupted attempts (TCEC Season 16, rule 15b).",
                    "short",
                    "sum by (event, scenario) (farm_interruptions_total{S}) > 0",
                ),
                _lines(
                    "Length of games",
                    "Median and 95th percentile of the finished games.",
                    "s",
                    (
                        _quantile(0.5, "event", "farm_game_duration_seconds_bucket{S}"),
                        "{{event}} median",
                    ),
                    (
                        _quantile(0.95, "event", "farm_game_duration_seconds_bucket{S}"),
                        "{{event}} 95 %",
                    ),
                ),
            ),
        ),
    ),
)
GAME = Board(
    "farm-game",
    "Farm: live game",
    "The game in flight: clocks, evaluations, speed, what the referee adds.",
    ("hall",),
    (
        (
            "Now",
            (
                _table(
                    "Who plays", "The game in flight in each hall.", "string", "farm_game_info{H}"
                ),
                _stat(
                    "Ply",
                    "Plies of the game, book included.",
                    "short",
                    "farm_game_ply{H}",
                    "{{hall}}",
                ),
                _stat(
                    "Since the last move",
                    "How long the engine on the move has thought.",
                    "s",
                    "time() - farm_game_last_move_timestamp_seconds{H}",
                    "{{hall}}",
                ),
                _stat(
                    "Game time",
                    "How long the game has been in flight.",
                    "s",
                    "time() - farm_game_start_timestamp_seconds{H}",
                    "{{hall}}",
                ),
                _stat(
                    "On the move",
                    "Whose clock runs.",
                    "string",
                    "farm_engine_thinking{H} == 1",
                    "{{side}}: {{engine}}",
                ),
            ),
        ),
        (
            "Engines",
            (
                _lines(
                    "Evaluations",
                    "From White's side; a mate is 100 pawns.",
                    "none",
                    ("farm_engine_eval_pawns{H}", "{{side}}: {{engine}}"),
                ),
                _lines(
                    "Clocks",
                    "Time left at the last word of each clock.",
                    "s",
                    ("farm_engine_clock_seconds{H}", "{{side}}: {{engine}}"),
                ),
                _lines(
                    "Depth",
                    "Depth of the searches in plies.",
                    "none",
                    ("farm_engine_depth{H}", "{{side}}: {{engine}}"),
                ),
                _lines(
                    "Speed",
                    "Nodes a second, as each engine counts them.",
                    "cps",
                    ("farm_engine_nodes_per_second{H}", "{{side}}: {{engine}}"),
                ),
            ),
        ),
        (
            "The rules and the hash",
            (
                _lines(
                    "Plies until a rule",
                    "Until a draw or win rule can end the game at the earliest.",
                    "none",
                    ("farm_game_draw_rule_plies{H}", "{{hall}} draw"),
                    ("farm_game_win_rule_plies{H}", "{{hall}} win"),
                ),
                _lines(
                    "Hash",
                    "Part of each engine's hash that is full.",
                    "percentunit",
                    ("farm_engine_hash_full_ratio{H}", "{{side}}: {{engine}}"),
                ),
            ),
        ),
        (
            "The referee",
            (
                _lines(
                    "Overhead",
                    "99th percentile of the referee's own time between moves; nobody is charged.",
                    "s",
                    (
                        _quantile(
                            0.99,
                            "hall",
                            "rate(farm_move_overhead_seconds_bucket{H}[$__rate_interval])",
                        ),
                        "{{hall}}",
                    ),
                ),
                _lines(
                    "Between the clocks",
                    "99th percentile from a move to the start of the other clock: ledger included.",
                    "s",
                    (
                        _quantile(
                            0.99, "hall", "rate(farm_move_wait_seconds_bucket{H}[$__rate_interval])"
                        ),
                        "{{hall}}",
                    ),
                ),
                _lines(
                    "Network",
                    "99th percentile of a remote engine's network time; never charged.",
                    "s",
                    (
                        _quantile(
                            0.99, "hall", "rate(farm_move_lag_seconds_bucket{H}[$__rate_interval])"
                        ),
                        "{{hall}}",
                    ),
                ),
                _lines(
                    "Time a move",
                    "Median of the time that moves took on their engine's clock.",
                    "s",
                    (
                        _quantile(
                            0.5, "hall", "rate(farm_move_time_seconds_bucket{H}[$__rate_interval])"
                        ),
                        "{{hall}}",
                    ),
                ),
                _lines(
                    "Moves a minute",
                    "Moves that were played in the last minutes.",
                    "short",
                    ("60 * rate(farm_move_time_seconds_count{H}[$__rate_interval])", "{{hall}}"),
                ),
            ),
        ),
    ),
)
ENGINES = Board(
    "farm-engines",
    "Farm: engines",
    "Crashes, losses on time, use of the clock.",
    ("season",),
    (
        (
            "Faults",
            (
                _table(
                    "Crashes by engine",
                    "Games lost by a crash or a stall.",
                    "short",
                    "sum by (event, engine) (farm_engine_crashes_total{S}) > 0",
                ),
                _table(
                    "Crashes left",
                    "Crashes until disqualification, by the event's rule (S16-15c).",
                    "short",
                    "farm_engine_crashes_left{S}",
                ),
                _table(
                    "Losses on time",
                    "Games lost on time, by engine.",
                    "short",
                    "sum by (event, engine) (farm_engine_time_losses_total{S})",
                ),
                _table(
                    "Illegal moves",
                    "Games lost by an illegal move, by engine.",
                    "short",
                    "sum by (event, engine) (farm_engine_illegal_moves_total{S})",
                ),
                _table(
                    "Out of their event",
                    "1 for engines that were disqualified or withdrawn.",
                    "short",
                    "farm_engine_excluded{S}",
                ),
            ),
        ),
        (
            "Clock and points",
            (
                _lines(
                    "Use of time",
                    "Part of the time it was given that an engine used, over its games.",
                    "percentunit",
                    (
                        _TIME_USE,
                        "{{engine}}",
                    ),
                ),
                _lines(
                    "Games",
                    "Finished games of each engine.",
                    "short",
                    ("sum by (engine) (farm_engine_games_total{S})", "{{engine}}"),
                ),
                _lines(
                    "Places",
                    "Place in the table of each event.",
                    "none",
                    ("farm_engine_rank{S}", "{{event}}: {{engine}}"),
                ),
            ),
        ),
    ),
)
HOSTS = Board(
    "farm-hosts",
    "Farm: hosts and GPUs",
    "Whether the hosts are as clocked games want them.",
    ("host",),
    (
        (
            "Hosts",
            (
                _table(
                    "Known hosts",
                    "What each host is and runs.",
                    "string",
                    "farm_host_info{T}",
                ),
                _stat(
                    "Silent for",
                    "Since the host's last heartbeat.",
                    "s",
                    "time() - farm_host_last_seen_timestamp_seconds{T}",
                    "{{host}}",
                ),
                _stat(
                    "Drained",
                    "1 where the hall's worker was drained: the host is silent on purpose.",
                    "bool_yes_no",
                    "farm_host_drained{T}",
                    "{{host}}",
                ),
                _lines(
                    "Use of cores",
                    "All cores of the host.",
                    "percentunit",
                    ("farm_host_cpu_ratio{T}", "{{host}}"),
                ),
                _lines(
                    "Foreign load",
                    "Use of the engines' cores by others than the hall; above 2 % is not quiet.",
                    "percentunit",
                    ("farm_host_foreign_cpu_ratio{T}", "{{host}}"),
                ),
                _lines(
                    "Memory available",
                    "Memory that is free for engines.",
                    "bytes",
                    ("farm_host_memory_available_bytes{T}", "{{host}}"),
                    ("farm_host_memory_size_bytes{T}", "{{host}} has"),
                ),
                _lines(
                    "Disk free",
                    "Where the hall's files are.",
                    "bytes",
                    ("farm_host_disk_free_bytes{T}", "{{host}}"),
                    ("farm_host_disk_size_bytes{T}", "{{host}} has"),
                ),
                _lines(
                    "Clock offset",
                    "Of the time of day, as the kernel estimates it.",
                    "s",
                    ("farm_host_clock_offset_seconds{T}", "{{host}}"),
                ),
                _lines(
                    "Clocks against Redis",
                    "How far times of day are ahead of Redis'; a second apart is too much.",
                    "s",
                    ("farm_host_clock_skew_seconds{T}", "{{host}}"),
                    ("farm_serve_clock_skew_seconds{J}", "farm serve"),
                    (
                        "timestamp(farm_redis_time_seconds{J}) - farm_redis_time_seconds{J}",
                        "Prometheus",
                    ),
                ),
                _stat(
                    "Time is kept",
                    "1 where the kernel says so.",
                    "bool_yes_no",
                    "farm_host_clock_synchronized{T}",
                    "{{host}}",
                ),
                _stat("Cores", "Of each host.", "short", "farm_host_cpus{T}", "{{host}}"),
                _stat(
                    "Quiet",
                    "1 where governor, swap and foreign load are as clocked games want them.",
                    "bool_yes_no",
                    "farm_host_quiet{T}",
                    "{{host}}",
                ),
                _stat(
                    "Speed of the host",
                    "Of the last reference bench against the recorded one.",
                    "percentunit",
                    "farm_host_bench_ratio{T}",
                    "{{host}}",
                ),
                _stat(
                    "Refused games",
                    "Finished games that the ledger did not accept.",
                    "short",
                    "farm_host_refused_games{T}",
                    "{{host}}",
                ),
                _lines(
                    "Swap",
                    "In use.",
                    "bytes",
                    ("farm_host_swap_used_bytes{T}", "{{host}}"),
                ),
                _lines(
                    "Temperature",
                    "The hottest sensor.",
                    "celsius",
                    ("farm_host_temperature_celsius{T}", "{{host}}"),
                ),
                _lines(
                    "Frequency",
                    "Mean of the engines' cores.",
                    "hertz",
                    ("farm_host_frequency_hertz{T}", "{{host}}"),
                ),
                _lines(
                    "Throttled",
                    "Times a core was slowed down by heat, a second.",
                    "cps",
                    ("rate(farm_host_throttles_total{T}[$__rate_interval])", "{{host}}"),
                ),
                _stat(
                    "Spooled games",
                    "Finished games that the archive does not have yet.",
                    "short",
                    "farm_host_spooled_games{T}",
                    "{{host}}",
                ),
            ),
        ),
        (
            "GPUs",
            (
                _lines(
                    "GPU use",
                    "From dcgm-exporter, nvidia_gpu_exporter or the farm's GPU worker.",
                    "percentunit",
                    ("gpu:util:ratio{J}", "{{instance}} {{uuid}}"),
                ),
                _lines(
                    "GPU clock",
                    "Clock of the processors.",
                    "hertz",
                    ("gpu:sm_clock:hz{J}", "{{instance}} {{uuid}}"),
                ),
                _lines(
                    "GPU temperature",
                    "Of the chip.",
                    "celsius",
                    ("gpu:temp:celsius{J}", "{{instance}} {{uuid}}"),
                ),
                _lines(
                    "GPU power",
                    "What the board draws.",
                    "watt",
                    ("gpu:power:watts{J}", "{{instance}} {{uuid}}"),
                ),
                _lines(
                    "GPU memory",
                    "Memory in use.",
                    "bytes",
                    ("gpu:memory_used:bytes{J}", "{{instance}} {{uuid}}"),
                    ("farm_gpu_memory_size_bytes{T}", "{{host}} {{uuid}} has"),
                ),
                _lines(
                    "GPU slowed down",
                    "1 while heat or power lower the clock.",
                    "bool",
                    ("gpu:throttled:bool{J}", "{{instance}} {{uuid}}"),
                ),
            ),
        ),
    ),
)
FARM = Board(
    "farm-internals",
    "Farm: internals",
    "Redis, queues, leases, the exporter itself.",
    ("hall",),
    (
        (
            "Redis",
            (
                _stat("Redis", "1 while Redis answers.", "bool_yes_no", "farm_redis_up{J}"),
                _stat(
                    "Durable",
                    "1 while no acknowledged write can be lost, as far as can be seen.",
                    "bool_yes_no",
                    "farm_redis_durable{J} * farm_redis_aof_write_ok{J}",
                ),
                _lines(
                    "Redis answers in", "One question.", "s", ("farm_redis_ping_seconds{J}", "time")
                ),
                _lines(
                    "Redis memory",
                    "In use.",
                    "bytes",
                    ("farm_redis_memory_used_bytes{J}", "used"),
                    ("farm_redis_memory_limit_bytes{J} > 0", "limit"),
                ),
                _lines(
                    "Append-only file",
                    "Its size.",
                    "bytes",
                    ("farm_redis_aof_size_bytes{J}", "size"),
                ),
                _lines(
                    "Clients", "Connected to Redis.", "short", ("farm_redis_clients{J}", "clients")
                ),
                _lines(
                    "Delayed writes",
                    "Writes a second that a slow disk delayed.",
                    "cps",
                    ("rate(farm_redis_aof_delayed_writes_total{J}[$__rate_interval])", "writes"),
                ),
                _lines(
                    "Rewrite of the append-only file",
                    "How long the present rewrite has run; 0 without one.",
                    "s",
                    ("farm_redis_aof_rewrite_seconds{J}", "rewrite"),
                ),
                _stat(
                    "Last rewrite",
                    "1 when the last rewrite of the append-only file succeeded.",
                    "bool_yes_no",
                    "farm_redis_aof_rewrite_ok{J}",
                ),
                _stat(
                    "Redis runs since",
                    "When it was started.",
                    "dateTimeAsLocal",
                    "farm_redis_start_timestamp_seconds{J} * 1000",
                ),
                _stat(
                    "Certificate ends in",
                    "Redis' TLS certificate; no data where it speaks none.",
                    "s",
                    "farm_redis_certificate_expiry_timestamp_seconds{J} - time()",
                ),
            ),
        ),
        (
            "The control side",
            (
                _stat(
                    "Last report of serve",
                    "`farm serve` reports every ten seconds.",
                    "s",
                    "time() - farm_serve_last_beat_timestamp_seconds{J}",
                ),
                _stat("Epoch", "Raised by every restore.", "none", "farm_ledger_epoch{J}"),
                _lines(
                    "Ledger",
                    "Entries of all journals in Redis; never fewer within an epoch.",
                    "short",
                    ("farm_ledger_entries{J}", "epoch {{epoch}}"),
                    ("farm_backup_journal_entries{J}", "in the backup"),
                ),
                _table(
                    "Out of service",
                    "Seasons that nobody may go on with, and why; no data when all is well.",
                    "short",
                    "farm_season_out_of_service{J}",
                ),
                _lines(
                    "Age of the backup",
                    "Since the last complete backup, and since one was taken off its host.",
                    "s",
                    ("time() - (farm_backup_last_success_timestamp_seconds{J} > 0)", "here"),
                    ("time() - (farm_backup_last_offsite_timestamp_seconds{J} > 0)", "elsewhere"),
                ),
                _lines(
                    "A backup takes",
                    "How long the last one took.",
                    "s",
                    ("farm_backup_duration_seconds{J}", "backup"),
                ),
                _stat(
                    "Backup failed",
                    "1 when the last backup, or its way off the host, failed.",
                    "bool_yes_no",
                    "farm_backup_failed{J}",
                ),
                _lines(
                    "Notices",
                    "To organizers: what waits, and what a channel did not take.",
                    "short",
                    ("farm_notices_waiting{J}", "waiting"),
                    ("farm_notices_failed{J}", "failed"),
                ),
                _stat(
                    "Notices looked at",
                    "Since `farm notify run` was at work.",
                    "s",
                    "time() - farm_notify_last_beat_timestamp_seconds{J}",
                ),
                _table("What serve is", "Its build and host.", "string", "farm_serve_info{J}"),
                _table(
                    "What the feeds show",
                    "The season and hall of the page and of TCEC's files.",
                    "string",
                    "farm_feed_followed{J}",
                ),
            ),
        ),
        (
            "Lanes",
            (
                _lines(
                    "Lanes at work",
                    "1 while a test game is in flight.",
                    "short",
                    ("farm_lane_playing{H}", "{{hall}}.{{lane}}"),
                ),
                _lines(
                    "Leases of lanes that ran out",
                    "How long ago; the next claim in the hall drops them.",
                    "s",
                    ("farm_lane_lease_overdue_seconds{H}", "{{hall}}.{{lane}}"),
                ),
                _lines(
                    "Test games that wait",
                    "Of open test matches, for the hall's lanes.",
                    "short",
                    ("farm_hall_test_games_waiting{H}", "{{hall}}"),
                ),
                _lines(
                    "Remote workers' tokens",
                    "By state; of condemned ones the results were not believed.",
                    "short",
                    ("farm_worker_tokens{J}", "{{state}}"),
                ),
            ),
        ),
        (
            "Halls and journals",
            (
                _lines(
                    "Lease age",
                    "Since the lease was renewed; it is suspected after its time to live.",
                    "s",
                    ("farm_lease_age_seconds{H}", "{{hall}}"),
                    ("farm_lease_ttl_seconds{H}", "{{hall}} time to live"),
                ),
                _lines(
                    "Queues",
                    "Rings that wait for a worker.",
                    "short",
                    ("farm_queue_length{J}", "{{queue}}"),
                ),
                _lines(
                    "Dropped messages",
                    "Messages in the queues that were none of the farm's.",
                    "short",
                    ("increase(farm_messages_dropped_total{J}[$__rate_interval])", "{{queue}}"),
                ),
                _lines(
                    "Halls at work",
                    "1 while a game is in flight.",
                    "short",
                    ("farm_hall_playing{H}", "{{hall}}"),
                ),
                _lines(
                    "Halls held",
                    "1 while a hold forbids new games, or while a drained hall stands still.",
                    "short",
                    ("farm_hall_held{H}", "{{hall}}"),
                    ("farm_hall_drained{H}", "{{hall}}, drained"),
                ),
                _lines(
                    "Overdue leases",
                    "1 while a lease has run out.",
                    "short",
                    ("farm_lease_overdue{H}", "{{hall}}"),
                ),
                _lines(
                    "Mirror lag",
                    "Journal entries that are not known to be on disk.",
                    "short",
                    ("farm_season_mirror_lag_entries{J}", "{{season}}"),
                ),
                _lines(
                    "Journal",
                    "Entries of the seasons' journals.",
                    "short",
                    ("farm_season_journal_entries{J}", "{{season}}"),
                ),
                _lines(
                    "Archive's disk",
                    "Free space.",
                    "bytes",
                    ("farm_archive_disk_free_bytes{J}", "free"),
                    ("farm_archive_disk_size_bytes{J}", "size"),
                ),
                _lines(
                    "Age of the feeds",
                    "Since each file of the broadcast was written.",
                    "s",
                    ("time() - farm_feed_last_write_timestamp_seconds{J}", "{{file}}"),
                ),
                _lines(
                    "Kibitzers",
                    "1 for each desk that has one.",
                    "short",
                    ("farm_kibitzer_seated{J}", "desk {{desk}}"),
                ),
                _lines(
                    "Words of kibitzers",
                    "Told of the game in flight.",
                    "short",
                    ("farm_kibitzer_words{J}", "{{hall}} desk {{desk}}"),
                ),
                _lines(
                    "A scrape takes",
                    "What the exporter computes for.",
                    "s",
                    ("farm_scrape_duration_seconds{J}", "scrape"),
                ),
                _stat(
                    "Failed scrapes",
                    "Scrapes at which the ledger could not be read.",
                    "short",
                    "farm_scrape_errors_total{J}",
                ),
                _table("Versions", "What runs.", "string", "farm_build_info{J}"),
            ),
        ),
    ),
)
BOARDS = (SEASON, GAME, ENGINES, HOSTS, FARM)
