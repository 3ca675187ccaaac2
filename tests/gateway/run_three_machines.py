"""A test of two git revisions on three machines, from its order to its decision, with no hand.

``make machines`` as root: network namespaces for a control host and two workers, which reach
nothing but the control host. There are Redis, the gateway behind nginx with TLS, the live page and
``farm match test``; each worker has a token, a compiler and no engine. It builds both revisions
from source, and plays until SPRT has decided. Then the page has to show the decision, and what each
machine has built and played.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator

import harness
import namespaces
import remote_stage
import run_attack

WORKERS = {"anna": namespaces.SERVE, "berta": namespaces.HALL}  # by the namespace of each
TEST = ("--sprt", "elo0=0", "elo1=30", "--games", "2000", "--tc", "10+0.1")
LIMIT_SECONDS = 2_400.0  # s: of the whole run, on a busy machine
PORT = 8443


def outside() -> int:
    """Make the machines, and run this script on the control host; return its exit code."""
    if not namespaces.available():
        print("hardware: namespaces need root and iproute2", file=sys.stderr)
        return 1
    machines = namespaces.Namespaces()
    try:
        machines.make()
        words = (sys.executable, __file__, *(machines.name(place) for place in WORKERS.values()))
        command = (*machines.within(namespaces.REDIS), *words)
        return subprocess.run(command, check=False, timeout=LIMIT_SECONDS).returncode
    finally:
        machines.remove()


@contextlib.contextmanager
def tls(stage: remote_stage.Stage, addresses: list[str]) -> Iterator[None]:
    """Run nginx before the gateway, with a certificate for the addresses that workers have."""
    root = stage.root
    location = run_attack.LOCATION.read_text().replace("127.0.0.1:8090", f"127.0.0.1:{stage.port}")
    names = ",".join(f"IP:{address}" for address in addresses)
    words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=farm")
    files = ("-keyout", str(root / "tls.key"), "-out", str(root / "tls.pem"))
    command = ("openssl", *words, "-addext", f"subjectAltName={names}", *files)
    subprocess.run(command, check=True, capture_output=True)
    site = run_attack.SITE.replace("127.0.0.1:{port}", "{port}")
    (root / "nginx.conf").write_text(site.format(root=root, port=PORT, location=location))
    nginx = subprocess.Popen((run_attack.NGINX, "-c", root / "nginx.conf", "-p", root))
    try:
        yield
    finally:
        nginx.terminate()
        nginx.wait()


def control(root: pathlib.Path, names: list[str]) -> dict[str, object]:
    """Be the control host: order the test, look on until it is decided; return what came of it."""
    machines = dict(zip(WORKERS, names, strict=True))
    addresses = [namespaces.Namespaces().redis_address(place) for place in WORKERS.values()]
    recipe = remote_stage.repository(root)
    with harness.Redis(root / "redis") as redis:
        stage = remote_stage.Stage(root, redis)
        stage.patience_seconds = LIMIT_SECONDS
        try:
            stage.one_host("gateway", "page")
            stage.serve()
            with tls(stage, addresses):
                return _played(stage, recipe, machines, dict(zip(machines, addresses, strict=True)))
        finally:
            stage.end()


def _played(
    stage: remote_stage.Stage,
    recipe: pathlib.Path,
    machines: dict[str, str],
    addresses: dict[str, str],
) -> dict[str, object]:
    page = stage.run("broadcast", "page", "serve-web", "--port", "0", "--forecast", "0")
    began = time.monotonic()
    match = stage.revisions(recipe, *TEST)
    stage.wait(stage.token.exists, "the token")
    for name, namespace in machines.items():
        place = ("nsenter", f"--net=/run/netns/{namespace}", "unshare", "--uts")
        stage.before[name] = [*place, "sh", "-c", 'hostname "$0"; exec "$@"', f"{name}-box"]
        stage.environment[name] = {"SSL_CERT_FILE": str(stage.root / "tls.pem")}
        stage.urls[name] = f"https://{addresses[name]}:{PORT}"
    workers, came = {}, time.monotonic()
    for name in machines:
        workers[name] = stage.work(name, "--build", engines=False)
    again, first_counted = 0, dict[str, float]()
    while match.poll() is None and time.monotonic() < began + LIMIT_SECONDS:
        for name, worker in workers.items():
            if worker.poll() is not None:  # as a service manager does (Restart=always)
                workers[name], again = stage.work(name, "--build", engines=False), again + 1
            counted = re.findall(r"(\d+) games? counted", stage.log(name))
            if name not in first_counted and counted and int(counted[-1]):
                first_counted[name] = round(time.monotonic() - came, 1)
        time.sleep(0.5)
    seconds = time.monotonic() - began
    assert match.returncode == 0, stage.log("match")
    url = _shown_at(stage)
    told = _asked(url, "api/v1/tests")[0]
    deadline = time.monotonic() + 60
    while told["status"] != "finished" and time.monotonic() < deadline:
        time.sleep(0.5)
        told = _asked(url, "api/v1/tests")[0]
    assert page.poll() is None
    test = _asked(url, "api/v1/seasons/test:m/test")
    environment = {"FARM_DATA": str(stage.root / "match")}
    shown = json.loads(harness.farm("match", "show", "m", "--json", env=environment))
    return {
        "seconds": round(seconds, 1),
        "games": shown["games"],
        "pairs": shown["pairs"],
        "verdict": shown["verdict"],
        "by machine": shown["by_host"],
        "builds": [f"{one['worker']} {one['name']} {one['bench']}" for one in shown["builds"]],
        "s to the first counted game": first_counted,
        "workers started again": again,
        "failed builds": shown["failed_builds"],
        "lost": shown["lost"],
        "page": told["reason"],
        "page's LLR": round(test["sprt"]["llr"], 2),
        "points of the page's graph": len(test["history"]["llr"]),
        "match": stage.log("match").strip().splitlines()[-6:],
    }


def _shown_at(stage: remote_stage.Stage) -> str:
    pattern = re.compile(r"the live page is at (http://\S+)")
    stage.wait(lambda: pattern.search(stage.log("page")), "the page")
    found = pattern.search(stage.log("page"))
    assert found is not None
    return found[1]


def _asked(url: str, place: str) -> dict[str, object] | list[dict[str, object]]:
    with urllib.request.urlopen(f"{url}{place}", timeout=30) as answer:
        told: dict[str, object] = json.load(answer)
    return told


def main() -> int:
    """Run; say what came of it."""
    if len(sys.argv) == 1:
        return outside()
    with tempfile.TemporaryDirectory(prefix="farm-machines-") as folder:
        came = control(pathlib.Path(folder), sys.argv[1:])
    print(json.dumps(came, indent=1))
    told = (came["verdict"], came["page"], len(came["by machine"]), came["lost"])
    whole = told == ("H1", "H1 accepted", len(WORKERS), 0) and not came["failed builds"]
    print("right" if whole else f"wrong: {told}")
    return 0 if whole else 1


if __name__ == "__main__":
    os.environ.setdefault("FARM_TEST_REDIS", "debian")
    sys.exit(main())
