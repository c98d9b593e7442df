"""Forecasts how an LLM serving deployment behaves.

The package carries the command `servecast`; these functions run it and return its JSON. A scenario is
the name of a preset, a document as a mapping, or the path of one.

    import servecast
    report = servecast.run("llama-3.1-8b-h100-chat", set={"workload.arrivals.rate_per_s": 20})
    print(report["verdict"]["sentence"])
"""

from __future__ import annotations

import html
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence, Union

__all__ = ["Answer", "Issue", "Report", "ServecastError", "Sweep", "command", "plan", "run", "sweep"]

Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class Issue(NamedTuple):
    """What is wrong, and where: a JSON pointer into the scenario, or ""."""

    path: str
    message: str


class ServecastError(Exception):
    """A scenario or an argument that was refused, with every issue."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__("\n".join(f"{i.path}: {i.message}" if i.path else i.message for i in issues))
        self.issues = list(issues)


class Report(dict):
    """The summary of `servecast run`, as the JSON has it; `servecast catalog report` explains each figure."""

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in _target(each)) + "</tr>"
            for each in self.get("slo", [])
        )
        head = "<tr><th>target</th><th>limit</th><th>value</th><th>95 % interval</th><th></th></tr>"
        sentence = html.escape(self.get("verdict", {}).get("sentence", ""))
        return f"<p><b>{sentence}</b></p>" + (f"<table>{head}{rows}</table>" if rows else "")


class Answer(dict):
    """What `servecast plan` answers, as the JSON has it, and `sentence`, the answer in words."""

    sentence: str = ""

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.sentence)}</b></p>"


class Sweep(list):
    """The points of a sweep, each a mapping with what was set (`over`) and its `report`."""

    def frame(self) -> Any:
        """The points as a pandas DataFrame: a column for each value that was set and each figure."""
        import pandas

        return pandas.json_normalize(list(self))


def command() -> str:
    """The path of the command in this package."""
    path = Path(__file__).parent / "bin" / "servecast"
    if not os.access(path, os.X_OK):  # unpacked by a program that drops modes
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    trace: str | os.PathLike[str] | None = None,
    once: bool = False,
    sampling: bool = False,
) -> Report:
    """Simulates a scenario. `once`: one run, without intervals; `sampling`: intervals of sampling alone."""
    words = [*_trace(trace), *(["--once"] if once else []), *(["--sampling"] if sampling else [])]
    return Report(json.loads(_said(["run"], scenario, set, words, "json").stdout))


def plan(
    question: str,
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    trace: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Answer:
    """Answers a question of capacity: "max-rate", "min-gpus", "growth" with `percent`, "day" with `hours`, ...

    Options are those of `servecast plan`, by their names; a sequence stands for values between commas.
    """
    words = _trace(trace)
    for name, value in options.items():
        several = isinstance(value, Sequence) and not isinstance(value, str)
        words += ["--" + name.replace("_", "-"), ",".join(map(str, value)) if several else str(value)]
    said = _said(["plan", question], scenario, set, words, "json")
    answer = Answer(json.loads(said.stdout))
    answer.sentence = (said.stderr.strip().splitlines() or [""])[-1]
    return answer


def sweep(
    scenario: Scenario,
    over: Mapping[str, Sequence[Any]],
    *,
    set: Mapping[str, Any] | None = None,
    trace: str | os.PathLike[str] | None = None,
    once: bool = False,
) -> Sweep:
    """Runs every combination of the values of `over`, on all cores. A point that cannot run has `issues`."""
    words = _trace(trace) + (["--once"] if once else [])
    for path, values in over.items():
        words += ["--over", f"{path}={','.join(_value(value) for value in values)}"]
    lines = _said(["sweep"], scenario, set, words, "jsonl").stdout.splitlines()
    return Sweep(json.loads(line) for line in lines)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _trace(trace: str | os.PathLike[str] | None) -> list[str]:
    return [] if trace is None else ["--trace", os.fspath(trace)]


def _target(target: Mapping[str, Any]) -> tuple[str, ...]:
    def ms(name: str) -> str:
        value = target.get(name)
        return "" if value is None else f"{value:.4g} ms"

    name = str(target.get("metric", "")).upper()
    if target.get("percentile") is not None:
        name += f" p{target['percentile']:g}"
    interval = f"{ms('low')} to {ms('high')}" if target.get("low") is not None else ""
    return name, ms("limit_ms"), ms("value_ms"), interval, {True: "met", False: "missed"}.get(target.get("met"), "")


def _said(
    name: list[str], scenario: Scenario, changes: Mapping[str, Any] | None, words: list[str], form: str
) -> subprocess.CompletedProcess[str]:
    document = json.dumps(scenario) if isinstance(scenario, Mapping) else None
    given = "-" if isinstance(scenario, Mapping) else os.fspath(scenario)
    for path, value in (changes or {}).items():
        words = [*words, "--set", f"{path}={_value(value)}"]
    said = subprocess.run(
        [command(), *name, given, *words, "-o", form], input=document or "", capture_output=True, text=True, check=False
    )
    if said.returncode == 0:
        return said
    for line in said.stderr.splitlines():
        if line.startswith('{"issues":'):
            raise ServecastError([Issue(**issue) for issue in json.loads(line)["issues"]])
    raise ServecastError([Issue("", said.stderr.strip() or f"servecast ended with {said.returncode}")])
