#!/usr/bin/env python3
"""Fills a manual page: a line `@KEY` of the template becomes the text of the file given as KEY=FILE.

usage: fill.py TEMPLATE OUTPUT VERSION KEY=FILE...
"""

import sys

template, output, version, *pairs = sys.argv[1:]
texts = {}
for pair in pairs:
    key, path = pair.split("=", 1)
    with open(path, encoding="utf-8") as f:
        texts[f"@{key}"] = f.read().rstrip("\n")

with open(template, encoding="utf-8") as f:
    lines = f.read().replace("@VERSION@", version).split("\n")
for i, line in enumerate(lines):
    if line.startswith("@"):
        if line not in texts:
            sys.exit(f"{template}:{i + 1}: nothing is known as {line}")
        lines[i] = texts.pop(line)
if texts:
    sys.exit(f"{template}: not used: {', '.join(texts)}")
with open(output, "w", encoding="utf-8") as f:
    f.write("\n".join(lines))
