"""Write the dashboards' JSON from ``panels.py``: ``python deploy/grafana/dashboards.py``.

The files are committed; a test runs this and finds nothing changed.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import panels
from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog import encoder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

HERE = pathlib.Path(__file__).parent / "dashboards"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
VARIABLES = {
    "job": "label_values(up, job)",  # GPU exporters have a job of their own
    "instance": 'label_values(up{job=~"$job"}, instance)',
    "season": 'label_values(farm_season_info{job=~"$job"}, season)',
    "hall": 'label_values(farm_hall_playing{job=~"$job"}, hall)',
    "host": 'label_values(farm_host_info{job=~"$job"}, host)',
}
MAKERS = {"stat": stat.Panel, "lines": timeseries.Panel, "table": table.Panel}


def variable(name: str) -> dashboard.QueryVariable:
    """Return a variable that lists a label's values."""
    made = dashboard.QueryVariable(name).label(name).datasource(SOURCE)
    made.query({"query": VARIABLES[name], "refId": name})
    made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).multi(True).include_all(True)  # noqa: FBT003 - the library's signature
    return made.all_value(".+")


def panel(told: panels.Panel, number: int) -> object:
    """Return a panel of the library."""
    made = MAKERS[told.kind]()
    made.id(number).title(told.title).description(told.description).unit(told.unit)
    made.datasource(SOURCE).height(told.height).span(told.width)
    for letter, query in zip("ABCDEF", told.queries, strict=False):
        target = prometheus.Dataquery().ref_id(letter).expr(query.text).datasource(SOURCE)
        if query.legend:
            target.legend_format(query.legend)
        if told.kind == "lines":
            target.range()
        else:
            target.instant()
        if told.kind == "table":
            target.format("table")
        made.with_target(target)
    if told.kind == "stat":
        shows_names = told.unit == "string"
        text = common_models.BigValueTextMode.NAME if shows_names else None
        made.text_mode(text or common_models.BigValueTextMode.VALUE)
        made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return made


def board(told: panels.Board) -> models.Dashboard:
    """Return a dashboard of the library."""
    made = dashboard.Dashboard(told.title).uid(told.uid).description(told.description)
    made.tags(["farm"]).readonly().refresh("15s").time("now-3h", "now").timezone("browser")
    made.tooltip(models.DashboardCursorSync.CROSSHAIR)
    made.link(
        dashboard.DashboardLink("Farm")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags(["farm"])
        .as_dropdown(True)  # noqa: FBT003 - the library's signature
        .keep_time(True)  # noqa: FBT003 - as above
    )
    made.with_variable(
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    )
    for name in ("job", "instance", *told.variables):
        made.with_variable(variable(name))
    number = 1
    for title, row in told.rows:
        made.with_row(dashboard.Row(title))
        for one in row:
            made.with_panel(panel(one, number))
            number += 1
    return made.build()


def main(directory: pathlib.Path) -> None:
    """Write one file a dashboard."""
    directory.mkdir(exist_ok=True)
    for told in panels.BOARDS:
        text = encoder.JSONEncoder(sort_keys=True, indent=2).encode(board(told))
        (directory / f"{told.uid}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("directory", nargs="?", type=pathlib.Path, default=HERE)
    main(told.parse_args().directory)
