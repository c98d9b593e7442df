#!/usr/bin/env python3
"""Constants of a GPU or an engine from measured runs, with cross-validation; see README.md."""
import argparse
import csv
import io
import itertools
import math
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = os.path.join(ROOT, "build", "release", "servecast")
# What counts how much: means repeat to 2 %, p99 to 5 %, and E2E is mostly TPOT.
WEIGHTS = {"tpot": 1, "ttft": 0.7, "e2e": 0.5, "ttft_p99": 0.15, "throughput": 1}
MOST_ROUNDS = 12


def rows_of(options, values):
    words = [COMMAND, "fidelity", "--rows"]
    if options.data:
        words += ["--data", options.data]
    for name, value in values.items():
        words += ["--set", f"{name}={value:.6g}"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = []
    for row in csv.DictReader(io.StringIO(text)):
        wanted = all(word.lower() in row["gpu"].lower() for word in options.where)
        in_sets = not options.sets or any(word in row["set"] for word in options.sets)
        if wanted and in_sets and row["metric"] in WEIGHTS and float(row["measured"]) > 0:
            rows.append(row)
    return rows


def left_out_of(row, column):
    """The name of the group that is left out together."""
    return row["load"] or row["row"] if column == "load" else row[column]


def error_of(rows):
    total = weight = 0.0
    for row in rows:
        w = WEIGHTS[row["metric"]]
        log = math.log(max(float(row["predicted"]), 1e-9) / float(row["measured"]))
        total += w * min(abs(log), 1.0)
        weight += w
    return total / weight if weight else math.inf


def descend(options, start, step, held, keep):
    values, step = dict(start), dict(step)

    def judge(trial):
        return error_of([row for row in rows_of(options, {**held, **trial}) if keep(row)])

    best = judge(values)
    for _ in range(MOST_ROUNDS):
        moved = False
        for name in values:
            for sign in (1, -1):
                trial = dict(values)
                trial[name] = max(0.0, trial[name] + sign * step[name])
                if trial[name] == values[name]:
                    continue
                error = judge(trial)
                if error < best - 1e-6:
                    values, best, moved = trial, error, True
                    break
        if not moved:
            step = {name: s / 2 for name, s in step.items()}
    return values


class Descent:
    """The best constants for the rows to keep, by steps from where they start."""

    def __init__(self, options, start, step, held):
        self.arguments, self.held = (options, start, step, held), held

    def best(self, keep):
        return descend(*self.arguments, keep)

    def rows(self, values):
        return rows_of(self.arguments[0], {**self.held, **values})


class Grid:
    """The same of all combinations of values, each of which is run once."""

    def __init__(self, options, choices, held):
        combinations = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
        self.runs = [(values, rows_of(options, {**held, **values})) for values in combinations]

    def best(self, keep):
        return min(self.runs, key=lambda run: error_of([row for row in run[1] if keep(row)]))[0]

    def rows(self, values):
        return next(rows for of, rows in self.runs if of == values)


def shown(rows):
    parts = []
    for metric in WEIGHTS:
        errors = [abs(float(row["error"])) for row in rows if row["metric"] == metric]
        if errors:
            parts.append(f"{metric} {100 * statistics.median(errors):.1f} % of {len(errors)}")
    return ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of measurements")
    parser.add_argument("--where", nargs="*", default=[], help="words in the name of the GPU")
    parser.add_argument("--sets", nargs="*", default=[], help="words in the name of the set")
    parser.add_argument("--leave", choices=["model", "gpu", "load"])
    parser.add_argument("constants", nargs="+", help="name=start:step, name=value,value or name=value!")
    options = parser.parse_args()
    start, step, held, choices = {}, {}, {}, {}
    for constant in options.constants:
        name, value = constant.split("=")
        if value.endswith("!"):
            held[name] = float(value[:-1])
        elif "," in value:
            choices[name] = [float(one) for one in value.split(",")]
        else:
            start[name], step[name] = map(float, value.split(":"))
    if start and choices:
        parser.error("either all constants have a start and a step, or all have values")
    search = Grid(options, choices, held) if choices else Descent(options, start, step, held)
    everything = search.best(lambda row: True)
    print("all:", {k: round(v, 4) for k, v in everything.items()})
    rows = search.rows(everything)
    print("  median error:", shown(rows), flush=True)
    if not options.leave:
        return
    collected = []
    for group in sorted({left_out_of(row, options.leave) for row in rows}):
        values = search.best(lambda row, g=group: left_out_of(row, options.leave) != g)
        unseen = [row for row in search.rows(values) if left_out_of(row, options.leave) == group]
        collected += unseen
        print(f"without {group}:", {k: round(v, 4) for k, v in values.items()})
        print("  median error on it:", shown(unseen), flush=True)
    print("left out, all together:", shown(collected))


main()
