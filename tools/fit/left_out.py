#!/usr/bin/env python3
"""What a fit predicts of rows that it left out, by folds; see README.md."""
import argparse
import collections
import csv
import math
import statistics
import sys

MOST_ROUNDS = 12
LINEAR = 0.3  # errors beyond this count less, as many are of rows that were read wrongly


def read(path):
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file)]


def fold_of(row, by):
    if by == "set":
        return row["set"]
    model, gpu, engine = row["simulated_as"].rsplit(", ", 2)
    return model.split(" in ")[0], gpu, engine.split("-")[0]


def setup_of(row):
    return row["simulated_as"], row["tp"], row["engine"], row["set"]


def loss(error):
    return abs(error) if abs(error) < LINEAR else LINEAR + LINEAR * (abs(error) - LINEAR)


class Fit:
    def __init__(self, base, trials, metric):
        self.rows = [i for i, row in enumerate(base) if row["metric"] == metric]
        self.rows = [i for i in self.rows if min(float(base[i]["measured"]), float(base[i]["predicted"])) > 0]
        predicted = [float(base[i]["predicted"]) for i in self.rows]
        self.error = [math.log(p / float(base[i]["measured"])) for p, i in zip(predicted, self.rows)]
        counts = collections.Counter(setup_of(base[i]) for i in self.rows)
        self.weight = [1 / counts[setup_of(base[i])] for i in self.rows]
        self.moves = {}
        for name, rows in trials.items():
            change = [math.log(float(rows[i]["predicted"]) / p) for i, p in zip(self.rows, predicted)]
            self.moves[name] = [(k, c) for k, c in enumerate(change) if abs(c) > 1e-5]

    def best(self, names, keep):
        """How far each constant is moved, 1 being its second value, and the errors then."""
        at, error, step = dict.fromkeys(names, 0.0), list(self.error), 0.4
        for _ in range(MOST_ROUNDS):
            for name in names:
                kept = [(k, c) for k, c in self.moves[name] if keep[k]]

                def judge(move, kept=kept):
                    return sum(self.weight[k] * loss(error[k] + move * c) for k, c in kept)

                moves = [m for m in (0, step, -step, 2 * step, -2 * step) if -1.5 <= at[name] + m <= 2.5]
                move = min(moves, key=judge)
                at[name] += move
                for k, c in self.moves[name]:
                    error[k] += move * c
            step = max(0.04, step * 0.75)
        return at, error

    def left_out(self, names, folds):
        out = [0.0] * len(self.rows)
        for fold in sorted(set(folds)):
            _, error = self.best(names, [other != fold for other in folds])
            for k, other in enumerate(folds):
                if other == fold:
                    out[k] = error[k]
        return out

    def total(self, errors):
        return sum(w * loss(e) for w, e in zip(self.weight, errors))


def shown(errors):
    return f"{100 * statistics.median(abs(math.exp(e) - 1) for e in errors):.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="rows of servecast fidelity --rows")
    parser.add_argument("--by", choices=["setup", "set"], default="setup")
    parser.add_argument("--metric", default="tpot")
    parser.add_argument("constants", nargs="+", help="NAME=ROWS.csv:FIRST:SECOND")
    options = parser.parse_args()
    base, trials, values = read(options.base), {}, {}
    for constant in options.constants:
        name, rest = constant.split("=")
        path, first, second = rest.rsplit(":", 2)
        trials[name], values[name] = read(path), (float(first), float(second))
    fit = Fit(base, trials, options.metric)
    folds = [fold_of(base[i], options.by) for i in fit.rows]
    names = list(trials)
    at, fitted = fit.best(names, [True] * len(folds))
    errors = fit.left_out(names, folds)
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    say(f"before {shown(fit.error)}, fitted {shown(fitted)}, left out {shown(errors)}")
    for name in names:
        first, second = values[name]
        others = fit.left_out([other for other in names if other != name], folds)
        more = 100 * (fit.total(others) / fit.total(errors) - 1)
        say(f"{name} {first + at[name] * (second - first):.4g}: left out without it {shown(others)}, loss {more:+.1f} %")
    writer = csv.writer(sys.stdout)
    writer.writerow(["set", "row", "metric", "fold", "measured", "predicted", "left_out"])
    for i, fold, error in zip(fit.rows, folds, errors):
        row = base[i]
        measured = float(row["measured"])
        name = fold if isinstance(fold, str) else " ".join(fold)
        cells = [row["set"], row["row"], row["metric"], name, row["measured"], row["predicted"]]
        writer.writerow([*cells, f"{measured * math.exp(error):.6g}"])


main()
