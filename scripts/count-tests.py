#!/usr/bin/env python3
"""Sums up test runs in a last line "N passed, N failed, N skipped":  count-tests.py WHAT=STATUS...

WHAT is Meson's JUnit report and STATUS what meson ended with: tests that speak TAP or JUnit count one by one. Any other
WHAT is a step, which counts as one test. Before that comes a line for each that failed, with its name, since of a long
run often only the last lines are kept. A test program that died is named from Meson's log beside the report, with the
last of what it said: its report may hold nothing but passed cases. Fails if anything failed, if Meson did, or if nothing
ran.
"""

import json
import re
import sys
import xml.etree.ElementTree as xml


LAST_LINES = 25  # of the output of a program that died


def died(report, blamed):
    """The names of test programs that did not end well and of which no case in `blamed` says so; prints their ends."""
    with open(re.sub(r"\.junit\.xml$", ".json", report), encoding="utf-8") as log:
        for line in log:
            run = json.loads(line)
            name = run["name"].split(" / ")[-1]
            known = re.compile(rf"/ {re.escape(name)}([.:]|$)")
            if run["result"] in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT") and not any(map(known.search, blamed)):
                said = (run.get("stdout") or "") + (run.get("stderr") or "")
                print(f"== the end of {name}", *said.splitlines()[-LAST_LINES:], sep="\n")
                yield f"{name}: {run['result']}, exit status {run['returncode']}, after {run['duration']:.0f} s"


def outcomes(report, status):
    """A pair for each test of a report: how it ended, and its name."""
    found = []
    try:
        for suite in xml.parse(report).iter("testsuite"):
            for case in suite.iter("testcase"):
                tags = {child.tag for child in case}
                word = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
                found.append((word, f"{report}: {suite.get('name')}: {case.get('name')}"))
        if status != 0:
            blamed = [name for word, name in found if word == "failed"]
            found += [("failed", f"{report}: {what}") for what in died(report, blamed)]
    except (OSError, ValueError, xml.ParseError) as e:
        print(f"no test report: {e}", file=sys.stderr)
    words = [word for word, _ in found]
    if status != 0 and "failed" not in words or "passed" not in words:
        found.append(("failed", f"{report}: a test died without saying anything, or there was none"))
    return found


def main(arguments):
    found = []
    for argument in arguments:
        what, status = argument.rsplit("=", 1)
        if what.endswith(".xml"):
            found += outcomes(what, int(status))
        else:
            found.append(("failed" if int(status) else "passed", f"step {what}"))
    for word, name in found:
        if word == "failed":
            print(f"failed: {name}")
    words = [word for word, _ in found]
    print(", ".join(f"{words.count(word)} {word}" for word in ("passed", "failed", "skipped")))
    return 1 if "failed" in words or "passed" not in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
