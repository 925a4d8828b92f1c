#!/usr/bin/env python3
"""Turns Meson's JUnit report into a last line "N passed, N failed, N skipped":  count-tests.py REPORT MESON_STATUS

Tests that speak TAP or JUnit count one by one. Fails if anything failed, if Meson did, or if nothing ran.
"""

import sys
import xml.etree.ElementTree as xml


def main(report, meson_status):
    passed = failed = skipped = 0
    try:
        cases = list(xml.parse(report).iter("testcase"))
    except (OSError, xml.ParseError) as e:
        print(f"no test report: {e}", file=sys.stderr)
        cases = []
    for case in cases:
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    if meson_status != 0 and failed == 0:
        failed = 1  # a test that died without saying anything
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
