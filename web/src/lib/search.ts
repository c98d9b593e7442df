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
};

/** How well a field answers: 0 not at all, 2 by its name, 1 by its place or what is said of it. */
export function answers(field: Pick<Field, 'path' | 'help' | 'choices'>, query: string): 0 | 1 | 2 {
  const words = query
    .toLowerCase()
    .split(/[\s/._-]+/)
    .filter(Boolean);
  const plain = (text: string) => text.toLowerCase().replaceAll(/[/._-]+/g, ' ');
  const all = `${plain(field.path)} ${plain(field.help)} ${plain(field.choices.join(' '))}`;
  const says = (text: string, word: string) => text.includes(word) || (word in others && text.includes(others[word]!));
  if (words.length === 0 || !words.every((word) => says(all, word))) return 0;
  const name = plain(field.path.slice(field.path.lastIndexOf('/')));
  return words.every((word) => says(name, word)) ? 2 : 1;
}
