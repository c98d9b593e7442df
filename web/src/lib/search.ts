// Which fields a search finds: by place, by vLLM's name, by the words of the help.
import type { Field } from 'servecast';

/** How well a field answers: 0 not at all, 2 by its name, 1 by its place or what is said of it. */
export function answers(field: Pick<Field, 'path' | 'help' | 'choices'>, query: string): 0 | 1 | 2 {
  const words = query
    .toLowerCase()
    .split(/[\s/._-]+/)
    .filter(Boolean);
  const plain = (text: string) => text.toLowerCase().replaceAll(/[/._-]+/g, ' ');
  const all = `${plain(field.path)} ${plain(field.help)} ${plain(field.choices.join(' '))}`;
  if (words.length === 0 || !words.every((word) => all.includes(word))) return 0;
  const name = plain(field.path.slice(field.path.lastIndexOf('/')));
  return words.every((word) => name.includes(word)) ? 2 : 1;
}
