#!/usr/bin/env python3
"""Sums up test runs in a last line "N passed, N failed, N skipped":  count-tests.py WHAT=STATUS...

WHAT is Meson's JUnit report and STATUS what meson ended with: tests that speak TAP or JUnit count one by one. Any other
WHAT is a step, which counts as one test. Fails if anything failed, if Meson did, or if nothing ran.
"""

import sys
import xml.etree.ElementTree as xml


def outcomes(report, status):
    """One word for each test of a report."""
    found = []
    try:
        for case in xml.parse(report).iter("testcase"):
            tags = {child.tag for child in case}
            found.append("failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed")
    except (OSError, xml.ParseError) as e:
        print(f"no test report: {e}", file=sys.stderr)
    if status != 0 and "failed" not in found or "passed" not in found:
        found.append("failed")  # a test that died without saying anything, or there was none
    return found


def main(arguments):
    found = []
    for argument in arguments:
        what, status = argument.rsplit("=", 1)
        if what.endswith(".xml"):
            found += outcomes(what, int(status))
        else:
            found.append("failed" if int(status) else "passed")
    print(", ".join(f"{found.count(word)} {word}" for word in ("passed", "failed", "skipped")))
    return 1 if "failed" in found or "passed" not in found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
