#!/usr/bin/env python3
"""Checks the alert rules and the queries of the dashboard with promtool, and tries the rules on the series of rules.test.yaml.

    host/deploy/prometheus/check.py              with the promtool of the machine
    host/deploy/prometheus/check.py --get        gets promtool where the machine has none

Without promtool it says so and ends with 0; with --get, if none is available, with 1.

promtool is in Debian's package prometheus. tests/clients/setup.sh takes it out of that package and starts no service. Must not
hold: which metrics there are; a test compares them with the page.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SETUP = FOLDER.parents[2] / "tests" / "clients" / "setup.sh"

# Variables of Grafana, which promtool does not know.
VARIABLES = [(re.compile(r"\$__rate_interval|\$__interval|\$__range"), "5m"), (re.compile(r"\$\{?\w+\}?"), "x")]


def rules_of(dashboard):
    """Each query of the dashboard as a recording rule, since promtool checks those offline."""
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []) if "expr" in target]
    rules = []
    for number, query in enumerate(queries):
        for variable, value in VARIABLES:
            query = variable.sub(value, query)
        rules.append({"record": f"dashboard:query:{number}", "expr": query})
    return {"groups": [{"name": "dashboard", "rules": rules}]}


def promtool(gets):
    """The path of promtool, or None."""
    found = shutil.which("promtool")
    if found or not gets:
        return found
    said = subprocess.run([SETUP, "promtool"], stdout=subprocess.PIPE, text=True, check=False)
    return said.stdout.strip() or None


def main():
    tool = promtool(gets="--get" in sys.argv[1:])
    if not tool:
        print("promtool is not there: rules and queries are not checked (Debian: apt-get install prometheus)", file=sys.stderr)
        return 1 if "--get" in sys.argv[1:] else 0
    dashboard = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "dashboard.yaml"
        # JSON is YAML.
        queries.write_text(json.dumps(rules_of(dashboard)), "utf-8")
        checks = [["check", "rules", FOLDER / "rules.yaml", queries], ["test", "rules", FOLDER / "rules.test.yaml"]]
        # All are run, so that one failure does not hide another.
        failed = [subprocess.run([tool, *check], check=False).returncode for check in checks]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
