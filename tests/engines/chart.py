#!/usr/bin/env python3
"""Renders the Helm chart where there is no helm: the few words of its language that the chart uses.

usage: chart.py CHART [VALUES.yaml]    prints what `helm template gmux CHART -n kube-system [-f VALUES.yaml]` would
"""

import pathlib
import re
import sys

import yaml

ACTION = re.compile(r"(?P<before>\s*)\{\{(?P<trim>-?)\s*(?P<what>.*?)\s*\}\}|(?P<text>.)", re.S)


def to_yaml(value):
    return yaml.safe_dump(value, default_flow_style=False, sort_keys=True).rstrip("\n")


def indent(text, n):
    return "\n" + "\n".join(" " * int(n) + line if line else line for line in text.rstrip("\n").split("\n"))


def look_up(scope, path):
    for key in path.lstrip(".").split("."):
        scope = scope[key] # a value that is not there is a mistake of the chart's
    return scope


def evaluate(scope, expression):
    value = None
    for i, stage in enumerate(expression.split("|")):
        words = stage.split()
        if i == 0 and words[0].startswith("."):
            value = look_up(scope, words[0])
        elif words[0] == "toYaml":
            value = to_yaml(look_up(scope, words[1]))
        elif words[0] == "quote":
            value = '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        elif words[0] == "nindent":
            value = indent(value, words[1])
        elif words[0] == "default":
            value = value or look_up(scope, words[1])
        else:
            raise ValueError(f"the renderer knows no {words[0]}")
    return value


def render(text, scope):
    out, shown = [], [True]
    for m in ACTION.finditer(text):
        if m["text"]:
            out += [m["text"]] if all(shown) else []
            continue
        if all(shown) and not m["trim"]:
            out.append(m["before"])
        what = m["what"]
        if what.startswith("if "):
            shown.append(bool(evaluate(scope, what[3:])))
        elif what == "end":
            shown.pop()
        elif all(shown):
            out.append(str(evaluate(scope, what)))
    if len(shown) != 1:
        raise ValueError("an `if` without its `end`")
    return "".join(out)


def merge(base, over):
    for key, value in over.items():
        if key not in base:
            raise ValueError(f"the chart has no value {key}")
        if isinstance(base[key], dict) and isinstance(value, dict) and base[key]:
            merge(base[key], value)
        else:
            base[key] = value


def main():
    chart = pathlib.Path(sys.argv[1])
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    if len(sys.argv) > 2:
        merge(values, yaml.safe_load(pathlib.Path(sys.argv[2]).read_text()))
    scope = {"Values": values, "Chart": {"AppVersion": about["appVersion"]},
             "Release": {"Name": "gmux", "Namespace": "kube-system"}}
    for template in sorted((chart / "templates").glob("*.yaml")):
        text = render(template.read_text(), scope)
        if text.strip():
            print("---\n" + text.strip("\n"))


if __name__ == "__main__":
    main()
