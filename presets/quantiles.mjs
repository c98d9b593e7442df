// Computes the quantile tables of presets/workloads/*.json from a request trace.
//
//   node presets/quantiles.mjs TRACE.csv[.gz]
//
// TRACE is CSV with a header line; lines that start with # are skipped. Known headers: Azure's
// (ContextTokens, GeneratedTokens), Vidur's (num_prefill_tokens, num_decode_tokens) and Servecast's
// (input_tokens, output_tokens). Prints the members "prompt_tokens" and "output_tokens" to paste
// into a workload's document, then, on stderr, how far the table's mean is from the trace's.
// A quantile is the sorted value at rank p*(n-1), interpolated linearly and rounded to a token.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const COLUMNS = {
  prompt_tokens: ["ContextTokens", "num_prefill_tokens", "input_tokens"],
  output_tokens: ["GeneratedTokens", "num_decode_tokens", "output_tokens"],
};
const PROBABILITIES = [
  0,
  0.01,
  ...Array.from({ length: 19 }, (_, i) => (i + 1) * 5 / 100),
  0.975,
  0.99,
  0.995,
  0.999,
  1,
];

function fail(message) {
  console.error(message);
  process.exit(2);
}

function readRows(path) {
  const bytes = readFileSync(path);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const text = (isGzip ? gunzipSync(bytes) : bytes).toString("utf8");
  const lines = text.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => line.split(","));
}

function columnOf(rows, names) {
  const index = rows[0].findIndex((cell) => names.includes(cell.trim()));
  if (index < 0) fail(`no column ${names.join(" or ")} in: ${rows[0].join(",")}`);
  return rows.slice(1).map((row, i) => {
    const value = Number(row[index]);
    if (!Number.isInteger(value) || value < 1) fail(`row ${i + 1}: ${row[index]} is no length`);
    return value;
  });
}

function quantile(sorted, p) {
  const rank = p * (sorted.length - 1);
  const low = Math.floor(rank);
  const high = Math.min(low + 1, sorted.length - 1);
  return Math.round(sorted[low] + (rank - low) * (sorted[high] - sorted[low]));
}

// The mean of a draw from the table: straight lines between its points.
function tableMean(table) {
  let mean = 0;
  for (let i = 1; i < table.length; ++i) {
    mean += (table[i][0] - table[i - 1][0]) * (table[i][1] + table[i - 1][1]) / 2;
  }
  return mean;
}

const path = process.argv[2];
if (path === undefined) fail("usage: node presets/quantiles.mjs TRACE.csv[.gz]");
const rows = readRows(path);
if (rows.length < 2) fail(`${path}: no requests`);

const members = Object.entries(COLUMNS).map(([name, names]) => {
  const values = columnOf(rows, names).sort((a, b) => a - b);
  const table = PROBABILITIES.map((p) => [p, quantile(values, p)]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  console.error(
    `${name}: ${values.length} requests, mean ${mean.toFixed(1)}, ` +
      `of the table ${tableMean(table).toFixed(1)}`,
  );
  const points = table.map((point) => `[${point.join(", ")}]`);
  const lines = [];
  for (let i = 0; i < points.length; i += 6) lines.push(points.slice(i, i + 6).join(", "));
  return `    "${name}": {\n      "distribution": "empirical",\n      "quantiles": [\n        ` +
    `${lines.join(",\n        ")}\n      ]\n    }`;
});
console.log(members.join(",\n"));
