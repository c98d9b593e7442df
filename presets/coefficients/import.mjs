// Writes blis-blackbox.json, the coefficient sets of the latency model "blackbox", from the file
// that BLIS published them in.
//
//   node presets/coefficients/import.mjs ../shared/reference/blis-golden/blackbox-coefficients.yaml
//
// The YAML (Apache-2.0) is defaults.yaml of inference-sim/inference-sim before its commit 90522ded
// (April 2026), section "models": one list item per set, of lines "key: number or text" and
// "key:" followed by "- number" lines. Anything else in the section is an error.
//
// A set is marked faster than light when its time per prefill token is below what the arithmetic
// takes at the peak of its GPUs: beta[1] < 2 * parameters / (tp * peak), parameters that a token
// goes through, dense peak of the arithmetic that the weights allow. Where this file does not know
// the size, nothing is said.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Billions of parameters that a token goes through (of mixtures of experts: the active ones), from
// the model cards on huggingface.co.
const BILLIONS = {
  "codellama/codellama-34b-instruct-hf": 33.7,
  "ibm-granite/granite-3.1-8b-instruct": 8.17,
  "meta-llama/llama-3.1-8b-instruct": 8.03,
  "meta-llama/llama-3.3-70b-instruct": 70.6,
  "meta-llama/llama-4-maverick-17b-128e-instruct": 17,
  "meta-llama/llama-4-scout-17b-16e-instruct": 17,
  "microsoft/phi-4": 14.7,
  "mistralai/mistral-small-24b-instruct-2501": 23.6,
  "mistralai/mistral-small-3.1-24b-instruct-2503": 23.6, // the language model in it
  "mistralai/mixtral-8x7b-instruct-v0.1": 12.9,
  "nvidia/llama-3.1-nemotron-70b-instruct-hf": 70.6,
  "openai/gpt-oss-120b": 5.1,
  "openai/gpt-oss-20b": 3.6,
  "qwen/qwen2.5-3b-instruct": 3.09,
  "qwen/qwen2.5-7b-instruct": 7.62,
  "qwen/qwen3-14b": 14.8,
  "huggingfacetb/smollm3-3b": 3.08,
};
// Dense peaks in TFLOP/s by NVIDIA's datasheets: of 16 bits, and of 8 where the GPU has them for
// the format.
const PEAKS = {
  H100: { wide: 989.5, fp8: 1979, int8: 1979 },
  "A100-80": { wide: 312, fp8: 312, int8: 624 },
};

function fail(message) {
  console.error(message);
  process.exit(2);
}

function readSets(text) {
  const lines = text.split(/\r?\n/);
  const first = lines.indexOf("models:") + 1;
  if (first === 0) fail('no section "models:"');
  const sets = [];
  let list = null;
  for (let i = first; i < lines.length && !/^[^\s\-#]/.test(lines[i]); ++i) {
    const line = lines[i].trimEnd();
    if (line === "" || line.startsWith("#")) continue;
    const match = /^(- | {2})([a-zA-Z_]+):(?: (.+))?$/.exec(line);
    if (match !== null) {
      if (match[1] === "- ") sets.push({});
      list = null;
      if (match[3] === undefined) list = sets.at(-1)[match[2]] = [];
      else sets.at(-1)[match[2]] = match[3];
      continue;
    }
    const number = /^ {2,4}- (-?[0-9.eE+-]+)$/.exec(line);
    if (number === null || list === null || !Number.isFinite(Number(number[1]))) {
      fail(`line ${i + 1}: not understood: ${line}`);
    }
    list.push(Number(number[1]));
  }
  return sets;
}

// The model whose arithmetic a quantised one does, and in which format.
function arithmeticOf(id) {
  const format = /w8a8$/.test(id) ? "int8" : /fp8(-dynamic)?$/.test(id) ? "fp8" : "wide";
  const name = id.replace(/-(fp8(-dynamic)?|quantized\.w\d+a\d+)$/, "").replace(/^[^/]*\//, "/");
  const key = Object.keys(BILLIONS).find((known) => known.endsWith(name));
  return { billions: key === undefined ? null : BILLIONS[key], format };
}

// beta[1] as a multiple of the time at the peak.
function multipleOfPeak(set) {
  const { billions, format } = arithmeticOf(set.id);
  const peak = PEAKS[set.GPU]?.[format];
  if (billions === null || peak === undefined) return null;
  const us = (2 * billions * 1e9) / (set.tp * peak * 1e12) * 1e6;
  return set.beta[1] / us;
}

const path = process.argv[2];
if (path === undefined) fail("usage: node presets/coefficients/import.mjs FILE.yaml");
const ids = new Map();
const rows = readSets(readFileSync(path, "utf8")).map((read, i) => {
  const set = { ...read, tp: Number(read.tensor_parallelism), alpha: read.alpha_coeffs, beta: read.beta_coeffs };
  const version = /:v([0-9.]+)$/.exec(set.vllm_version ?? "")?.[1];
  const whole = set.id && PEAKS[set.GPU] && set.tp >= 1 && version;
  if (!whole || set.alpha?.length !== 3 || set.beta?.length !== 3) fail(`set ${i + 1} is not whole`);
  // Some were published twice, with other numbers or the same ones.
  const base = `${set.id.replace(/^[^/]*\//, "")}/${set.GPU.toLowerCase()}/tp${set.tp}/vllm-${version}`;
  const nth = (ids.get(base) ?? 0) + 1;
  ids.set(base, nth);
  const multiple = multipleOfPeak(set);
  const row = {
    id: nth === 1 ? base : `${base}/${nth}`,
    model: set.id,
    alpha: set.alpha,
    beta: set.beta,
    ...(multiple === null ? {} : { prefill_time_over_peak: Number(multiple.toPrecision(3)) }),
    ...(multiple !== null && multiple < 1 ? { faster_than_light: true } : {}),
  };
  return row;
});

const head = {
  name: "BLIS blackbox coefficients",
  description:
    "Step-time coefficients per model, GPU, tensor parallelism and vLLM version, in microseconds, " +
    "fitted by the authors of BLIS by Bayesian optimisation of mean and p90 of TTFT, ITL and E2E. " +
    "For demonstration: prefill_time_over_peak below 1 (faster_than_light) is less than the " +
    "arithmetic takes at the GPU's peak.",
  sources: {
    "*": "inference-sim/inference-sim, defaults.yaml before commit 90522ded (April 2026), section models",
    prefill_time_over_peak: "computed by presets/coefficients/import.mjs from model cards and datasheets",
  },
  licence: "Apache-2.0, copyright the BLIS authors; changes: form, ids, the mark",
};
const text = JSON.stringify(head, null, 2).slice(0, -2) +
  `,\n  "sets": [\n${rows.map((row) => `    ${JSON.stringify(row)}`).join(",\n")}\n  ]\n}\n`;
writeFileSync(fileURLToPath(new URL("blis-blackbox.json", import.meta.url)), text);
const known = rows.filter((row) => row.prefill_time_over_peak !== undefined);
console.error(`${rows.length} sets, of ${known.length} the size is known, ` +
  `${known.filter((row) => row.faster_than_light).length} are faster than light`);
