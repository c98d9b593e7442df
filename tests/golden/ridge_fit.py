#!/usr/bin/env python3
"""Ridge regression a second time: the normal equations in exact fractions, by the standard library alone.

    ridge_fit.py           compares tests/golden/ridge_fit.json with what the equations say
    ridge_fit.py --write   makes the file anew

The engine fits from triangular factors (core/src/calibrate/ridge.h); tests/core/training_test.cpp
holds it to the file. For each lambda: coefficients c that make

    sum of weight (target - row . c)^2 + lambda * sum of (scale_j c_j)^2

least, where scale_j is the root mean square of column j by weight; the degrees of freedom, the
trace of X (X'WX + lambda S)^-1 X'W; and the error of the five folds in which each block of the rows
is predicted from the blocks before it.
"""
import json
import math
import pathlib
import sys
from fractions import Fraction

FILE = pathlib.Path(__file__).with_name("ridge_fit.json")
LAMBDAS = [0, 0.001, 0.01, 0.1, 1, 10, 100]
BLOCKS = 6
TOLERANCE = 1e-10


def rows():
    """120 rows of six columns: seconds, shares and a bias, two of them nearly alike."""
    state = 20261125

    def draw():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 11) / 2**53

    made = []
    for i in range(120):
        a, b, c, d, e = (draw() for _ in range(5))
        row = [a * 8e-3, a * 8e-3 * (1 + b * 1e-3), b * b * 1e-4, c * 12, 1 / (1 + math.floor(20 * d)), 1.0]
        noise = (e - 0.5) * 60
        target = 1.1e6 * row[0] + 2e5 * row[1] + 3e6 * row[2] + 40 * row[3] + 90 * row[4] + 700 + noise
        made.append({"row": row, "target": target, "weight": 0.5 if i % 7 == 3 else 1.0})
    return made


def solve(matrix, right):
    """Gauss's elimination of columns of right sides, exact."""
    n = len(matrix)
    work = [list(matrix[i]) + list(right[i]) for i in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if work[i][k] != 0)
        work[k], work[pivot] = work[pivot], work[k]
        for i in range(n):
            if i == k or work[i][k] == 0:
                continue
            factor = work[i][k] / work[k][k]
            work[i] = [x - factor * y for x, y in zip(work[i], work[k])]
    return [[x / work[i][i] for x in work[i][n:]] for i in range(n)]


def fit(samples, lam):
    n = len(samples[0]["row"])
    table = [([Fraction(x) for x in s["row"]], Fraction(s["target"]), Fraction(s["weight"])) for s in samples]
    count = sum(w for _, _, w in table)
    gram = [[sum(w * x[i] * x[j] for x, _, w in table) for j in range(n)] for i in range(n)]
    right = [sum(w * x[i] * y for x, y, w in table) for i in range(n)]
    ridge = [[gram[i][j] + (Fraction(lam) * gram[i][i] / count if i == j else 0) for j in range(n)] for i in range(n)]
    solved = solve(ridge, [[right[i]] + gram[i] for i in range(n)])
    return [float(s[0]) for s in solved], float(sum(solved[i][1 + i] for i in range(n)))


def fold_error(samples, lam):
    edges = [len(samples) * b // BLOCKS for b in range(BLOCKS + 1)]
    total = 0
    for block in range(1, BLOCKS):
        coefficients, _ = fit(samples[: edges[block]], lam)
        squares = weights = 0
        for s in samples[edges[block] : edges[block + 1]]:
            off = sum(x * c for x, c in zip(s["row"], coefficients)) - s["target"]
            squares += s["weight"] * off * off
            weights += s["weight"]
        total += math.sqrt(squares / weights)
    return total / (BLOCKS - 1)


def fits(samples):
    for lam in LAMBDAS:
        coefficients, degrees = fit(samples, lam)
        yield {
            "lambda": lam,
            "coefficients": coefficients,
            "degrees": degrees,
            "fold_rmse": fold_error(samples, lam),
        }


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def main():
    if sys.argv[1:] == ["--write"]:
        samples = rows()
        FILE.write_text(json.dumps({"rows": samples, "fits": list(fits(samples))}, indent=1) + "\n")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    golden = json.loads(FILE.read_text())
    wrong = 0
    for found, right in zip(golden["fits"], fits(golden["rows"]), strict=True):
        pairs = list(zip(found["coefficients"], right["coefficients"], strict=True))
        pairs += [(found[key], right[key]) for key in ("lambda", "degrees", "fold_rmse")]
        for a, b in pairs:
            if not near(a, b):
                print(f"lambda {right['lambda']}: {a}, by the equations {b}")
                wrong += 1
    if wrong:
        sys.exit(f"{wrong} differences")
    print(f"{len(golden['fits'])} fits as the equations say")


if __name__ == "__main__":
    main()
