// For tests: a field of the catalogue, a number unless said otherwise.
import type { Field } from 'servecast';

export const field = (path: string, more: Partial<Field> = {}): Field => ({
  path,
  type: 'number',
  unit: '',
  help: '',
  required: false,
  default: null,
  minimum: null,
  maximum: null,
  choices: [],
  ...more,
});
