#!/usr/bin/env python3
"""Checks the alert rules and the queries of the dashboard with promtool, if this machine has it.

    host/deploy/prometheus/check.py              ends with 0 and a note where there is no promtool
    host/deploy/prometheus/check.py --required   ends with 1 there

promtool is in Debian's package prometheus. Must not hold: which metrics there are; a test compares them with the page.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

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


def main():
    promtool = shutil.which("promtool")
    if not promtool:
        print("promtool is not there: rules and queries are not checked (Debian: apt-get install prometheus)", file=sys.stderr)
        return int("--required" in sys.argv[1:])
    dashboard = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "dashboard.yaml"
        # JSON is YAML.
        queries.write_text(json.dumps(rules_of(dashboard)), "utf-8")
        checked = subprocess.run([promtool, "check", "rules", str(FOLDER / "rules.yaml"), str(queries)], check=False)
    return checked.returncode


if __name__ == "__main__":
    sys.exit(main())
