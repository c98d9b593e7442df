// Which fields a search finds: by place, by vLLM's name, by the words of the help.
import type { Field } from 'servecast';

/** What people call what the catalogue calls otherwise. */
const others: Readonly<Record<string, string>> = {
  users: 'concurrency',
  user: 'concurrency',
  clients: 'concurrency',
  concurrent: 'concurrency',
  rpm: 'rate per s',
  rps: 'rate per s',
  qps: 'rate per s',
  throughput: 'rate per s',
  tp: 'tensor parallel',
  pp: 'pipeline parallel',
  ep: 'expert parallel',
  dp: 'data parallel',
  sla: 'slo',
  cost: 'price',
  dollars: 'price',
  nodes: 'replicas',
  instances: 'replicas',
  servers: 'replicas',
  seats: 'max num seqs',
  batch: 'max num seqs',
  vram: 'gpu memory utilization',
  spec: 'speculative',
  eagle: 'speculative',
  mtp: 'speculative',
  lora: 'loras',
};
/** Of several words; the first that is found stands for them. */
const phrases: readonly (readonly [RegExp, string])[] = [
  [/\b(max(imum)? )?batch size\b/g, 'max_num_seqs'],
  [/\b(concurrent|parallel|simultaneous) (users|requests|clients|sessions)\b/g, 'concurrency'],
  [/\b(tokens? per (step|batch)|token budget)\b/g, 'max_num_batched_tokens'],
  [/\b(context|sequence) (length|window|size)\b/g, 'max_model_len'],
  [/\b(prompt|input|isl) (length|size)\b/g, 'prompt_tokens'],
  [/\b(output|answer|response|osl) (length|size)\b/g, 'output_tokens'],
  [/\b(number of|how many) gpus\b/g, 'tensor_parallel'],
  [/\brequests per (second|minute)\b/g, 'rate_per_s'],
  [/\bweights? (precision|format|type)\b/g, 'quantization'],
];

/** How well a field answers: 0 not at all, 2 by its name, 1 by its place or what is said of it. */
export function answers(field: Pick<Field, 'path' | 'help' | 'choices'>, query: string): 0 | 1 | 2 {
  const words = phrases
    .reduce((text, [phrase, name]) => text.replaceAll(phrase, name), query.toLowerCase().replaceAll(/\s+/g, ' '))
    .split(/[\s/._-]+/)
    .filter(Boolean);
  const plain = (text: string) => text.toLowerCase().replaceAll(/[/._-]+/g, ' ');
  const all = `${plain(field.path)} ${plain(field.help)} ${plain(field.choices.join(' '))}`;
  const says = (text: string, word: string) => text.includes(word) || (word in others && text.includes(others[word]!));
  if (words.length === 0 || !words.every((word) => says(all, word))) return 0;
  const name = plain(field.path.slice(field.path.lastIndexOf('/')));
  return words.every((word) => says(name, word)) ? 2 : 1;
}
