"""Prefill attention: measured times as two curves over rows, query tokens times heads.

    time = start(rows of the step, in whole tiles) + kv_us * (tokens times KV heads)
           + max(least of pairs' prices * all pairs, slowest chunk: pairs * price(rows of that chunk))

A pair is one query with one key in one head. `start` is what rows take beside their keys; the price of a
pair falls as rows fill the GPU, so a key for all rows, rows * price, takes no less for more rows. Chunks
run beside each other: together they take what their pairs take at best, or what the slowest takes alone.
"""
import math
import statistics

TILES = (1, 64, 128)  # rows of a token's tile that kernels of today fill
HELD = 0.02  # second differences of the curves' logarithms, against errors of 1
ROBUST = 0.05  # errors beyond count in proportion, not by their squares
ROUNDS = 30


class Prompts:
    """Equal chunks of one step: how many, tokens, tokens before, heads, KV heads, microseconds."""

    def __init__(self, chunks, tokens, before, heads, kv_heads, time):
        self.chunks, self.tokens, self.before, self.time = chunks, tokens, before, time
        self.heads, self.kv = heads, chunks * tokens * kv_heads

    def in_tiles(self, tile):
        rows = -(-self.tokens // tile) * tile
        self.rows = self.chunks * self.heads * rows
        self.rows_of_one = self.heads * rows
        self.pairs = self.heads * (rows * self.before + self.tokens * (self.tokens + 1) / 2)


def place(knots, x):
    """The knot below, powers of two, and how far log x is on the way to the next."""
    y = min(max(math.log2(x) - knots[0], 0), len(knots) - 1)
    i = min(int(y), len(knots) - 2)
    return i, y - i


def solve(matrix, right):
    n = len(right)
    rows = [matrix[i] + [right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            f = rows[r][i] / rows[i][i]
            if f:
                for c in range(i, n + 1):
                    rows[r][c] -= f * rows[i][c]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - sum(rows[i][c] * out[c] for c in range(i + 1, n))) / rows[i][i]
    return out


class Prefill:
    """Logarithms: of `start` at its knots, of a pair's price at its own, of kv_us."""

    def __init__(self, prompts, tile, least_pair_us):
        self.prompts, self.tile, self.least = prompts, tile, least_pair_us
        for p in prompts:
            p.in_tiles(tile)
        span = lambda values: list(range(math.floor(math.log2(min(values))), math.ceil(math.log2(max(values))) + 1))
        self.start_knots = span([p.rows for p in prompts])
        self.price_knots = span([p.rows_of_one for p in prompts])
        n, m = len(self.start_knots), len(self.price_knots)
        shortest = min(p.time for p in prompts)
        self.at = [math.log(shortest + 2e-4 * 2**k) for k in self.start_knots]
        self.at += [math.log(statistics.median(p.time / p.pairs for p in prompts))] * m + [math.log(1e-4)]
        self.size, self.prices = n + m + 1, n
        self.places = [(place(self.start_knots, p.rows), place(self.price_knots, p.rows_of_one)) for p in prompts]
        step, error = 1e-3, self.squares(self.at)
        for _ in range(ROUNDS):
            trial = self.moved(step)
            worse = self.squares(trial)
            if worse < error:
                done = error - worse < 1e-5 * error
                self.at, error, step = trial, worse, step / 5
                if done:
                    break
            else:
                step *= 5
        self.make_monotone()
        errors = sorted(abs(math.log(self.parts(i, self.at)[0] / p.time)) for i, p in enumerate(prompts))
        self.median, self.p90 = errors[len(errors) // 2], errors[len(errors) * 9 // 10]

    def parts(self, i, at):
        """Predicted time of prompts i, and its derivatives by the parameters it depends on."""
        p, ((s, sf), (k, kf)) = self.prompts[i], self.places[i]
        k += self.prices
        start = math.exp(at[s] + sf * (at[s + 1] - at[s]))
        kv = math.exp(at[-1]) * p.kv
        alone = p.pairs * math.exp(at[k] + kf * (at[k + 1] - at[k]))
        best = self.size - 2
        together = p.chunks * p.pairs * math.exp(at[best])
        slopes = [(s, start * (1 - sf)), (s + 1, start * sf), (self.size - 1, kv)]
        slopes += [(best, together)] if together > alone else [(k, alone * (1 - kf)), (k + 1, alone * kf)]
        return start + kv + max(together, alone), slopes

    def bends(self):
        for i in list(range(1, self.prices - 1)) + list(range(self.prices + 1, self.size - 2)):
            yield i

    def squares(self, at):
        total = 0.0
        for i, p in enumerate(self.prompts):
            r = math.log(self.parts(i, at)[0] / p.time) / ROBUST
            total += 2 * ROBUST**2 * (math.sqrt(1 + r * r) - 1)
        return total + sum((HELD * (at[i - 1] - 2 * at[i] + at[i + 1]))**2 for i in self.bends())

    def moved(self, step):
        """One step of Levenberg and Marquardt."""
        n, at = self.size, self.at
        matrix, right = [[0.0] * n for _ in range(n)], [0.0] * n

        def add(slopes, residual, weight):
            for a, x in slopes:
                right[a] -= weight * x * residual
                for b, y in slopes:
                    matrix[a][b] += weight * x * y

        for i, p in enumerate(self.prompts):
            time, slopes = self.parts(i, at)
            r = math.log(time / p.time)
            add([(a, x / time) for a, x in slopes], r, 1 / math.sqrt(1 + (r / ROBUST)**2))
        for i in self.bends():
            add([(i - 1, HELD), (i, -2 * HELD), (i + 1, HELD)], HELD * (at[i - 1] - 2 * at[i] + at[i + 1]), 1)
        for i in range(n):
            matrix[i][i] *= 1 + step
            matrix[i][i] += 1e-9
        return [x + max(-2.0, min(2.0, d)) for x, d in zip(at, solve(matrix, right))]

    def make_monotone(self):
        two = math.log(2)
        at, first = self.at, self.prices
        for i in range(1, first):  # no less for more rows, and no more than twice for twice
            at[i] = min(max(at[i], at[i - 1]), at[i - 1] + two)
        for i in range(self.size - 2, first - 1, -1):  # a pair: the light's price at least, never rising
            at[i] = max(at[i], math.log(self.least), at[i + 1] if i < self.size - 2 else -math.inf)
            if i < self.size - 2:
                at[i] = min(at[i], at[i + 1] + two)

    def curves(self):
        """Of rows: us that they take, us that one key takes for them all; us of a KV head's token."""
        start = {2**k: math.exp(x) for k, x in zip(self.start_knots, self.at)}
        key = {2**k: 2**k * math.exp(x) for k, x in zip(self.price_knots, self.at[self.prices:])}
        return start, key, math.exp(self.at[-1])


def fitted(prompts, least_pair_us):
    """With the tile that explains the measurements best."""
    return min((Prefill(prompts, tile, least_pair_us) for tile in TILES), key=lambda fit: fit.median)
