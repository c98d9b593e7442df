// What APIs ask for the models of the presets, $ per million tokens in and out: of each model's own providers (no resellers)
// the one in the middle, by the sum of both. models.dev, snapshot of 2 July 2026 (anomalyco/models.dev@f3fc692,
// providers/*/models). Comes with the plans.
export interface ListedPrice {
  readonly input: number;
  readonly output: number;
  readonly provider: string;
  /** Providers among which it is in the middle. */
  readonly of: number;
}

export const listedOn = 'models.dev, 2 July 2026';

const row = (provider: string, input: number, output: number, of: number): ListedPrice => ({
  provider,
  input,
  output,
  of,
});

const listed: Readonly<Record<string, ListedPrice>> = {
  'deepseek-v3': row('Novita AI', 0.27, 1.12, 4),
  'gpt-oss-120b': row('Groq', 0.15, 0.6, 17),
  'gpt-oss-20b': row('Together AI', 0.05, 0.2, 13),
  'llama-3.1-70b': row('W&B', 0.8, 0.8, 2),
  'llama-3.1-8b': row('Groq', 0.05, 0.08, 6),
  'llama-3.3-70b': row('Azure', 0.71, 0.71, 11),
  'llama-4-scout-17b-16e': row('Novita AI', 0.18, 0.59, 6),
  'qwen3-14b': row('SiliconFlow', 0.07, 0.28, 3),
  'qwen3-30b-a3b': row('Nebius', 0.1, 0.3, 5),
  'qwen3-32b': row('Novita AI', 0.1, 0.45, 7),
};

/** By a preset's id; null: no list has it. */
export const listedPrice = (model: unknown): ListedPrice | null =>
  typeof model === 'string' && Object.hasOwn(listed, model) ? (listed[model] ?? null) : null;
