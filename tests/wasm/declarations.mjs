// Reads the interfaces of a .d.ts well enough to hold real values against them: Emscripten 3.1.6
// cannot write the declarations, so they are by hand and this is what keeps them true.
// Covers what wasm/servecast.d.ts uses: interfaces, also of one that stands above, two at once (&), literal unions, arrays, Record, nested objects.

/** Splits at `separator` outside of any bracket or quotes. */
function split(text, separator) {
  const parts = [''];
  let depth = 0;
  let quoted = false;
  for (const [index, letter] of [...text].entries()) {
    if (letter === '"') quoted = !quoted;
    // The > of => closes nothing.
    else if (!quoted && '{[(<'.includes(letter)) depth += 1;
    else if (!quoted && '}])>'.includes(letter) && text[index - 1] !== '=') depth -= 1;
    if (letter === separator && depth === 0 && !quoted) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** The members of an interface's body: name -> {type, optional, method}. */
function members(body) {
  const found = new Map();
  for (const member of split(body, ';')) {
    const [, name, optional, rest] = /^(?:readonly\s+)?(\w+)(\??)\s*([\s\S]*)$/.exec(member) ?? [];
    if (name === undefined) throw new Error(`cannot read the member ${member}`);
    found.set(name, {
      optional: optional === '?',
      method: rest.startsWith('('),
      type: rest.replace(/^:\s*/, ''),
    });
  }
  return found;
}

export class Declarations {
  #interfaces = new Map();
  #aliases = new Map();

  constructor(laidOut) {
    // Literals in the quotes of JSON, however they are laid out.
    const source = laidOut.replaceAll(/'([\w-]+)'/g, '"$1"');
    const text = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
    for (const { 1: name, 2: base, index, 0: head } of text.matchAll(/export interface (\w+) (?:extends (\w+) )?\{/g)) {
      const begin = index + head.length;
      let depth = 1;
      let end = begin;
      for (; depth > 0; end += 1) depth += text[end] === '{' ? 1 : text[end] === '}' ? -1 : 0;
      const inherited = base === undefined ? [] : this.#interfaces.get(base);
      this.#interfaces.set(name, new Map([...inherited, ...members(text.slice(begin, end - 1))]));
    }
    for (const [, name, type] of text.matchAll(/export type (\w+) =([^;]+);/g)) {
      this.#aliases.set(name, type.trim());
    }
  }

  /** The names of an interface's members. */
  names(name) {
    return [...this.#interfaces.get(name).keys()];
  }

  /** What is wrong with a value of this type, each as a sentence; [] when it fits exactly. */
  problems(type, value, path = '') {
    const at = path === '' ? 'the value' : path;
    const wrong = () => [`${at} is ${JSON.stringify(value)?.slice(0, 80)}, declared as ${type}`];
    const choices = split(type, '|');
    if (choices.length > 1) {
      return choices.some((choice) => this.problems(choice, value, path).length === 0) ? [] : wrong();
    }
    const joined = split(type, '&');
    if (joined.length > 1) return this.#joint(joined, value, path);
    const grouped = /^\(([^()]+)\)$/.exec(type);
    if (grouped) return this.problems(grouped[1], value, path);
    if (type === 'unknown') return [];
    if (type === 'null') return value === null ? [] : wrong();
    if (/^['"]/.test(type)) return value === type.slice(1, -1) ? [] : wrong();
    if (['string', 'number', 'boolean'].includes(type)) return typeof value === type ? [] : wrong();
    const array = /^(?:readonly\s+)?([\s\S]+)\[\]$/.exec(type);
    if (array) {
      if (!Array.isArray(value)) return wrong();
      return value.flatMap((item, index) => this.problems(array[1], item, `${path}/${index}`));
    }
    const readonly = /^Readonly<([\s\S]+)>$/.exec(type);
    if (readonly) return this.problems(readonly[1], value, path);
    const record = /^Record<string,([\s\S]+)>$/.exec(type);
    if (record) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong();
      return Object.entries(value).flatMap(([key, item]) => this.problems(record[1].trim(), item, `${path}/${key}`));
    }
    if (this.#aliases.has(type)) return this.problems(this.#aliases.get(type), value, path);
    const object = this.#membersOf(type);
    if (object === undefined) throw new Error(`cannot read the type ${type}`);
    return this.#unlike(object, value, path, wrong);
  }

  #membersOf(type) {
    return type.startsWith('{') ? members(type.slice(1, -1)) : this.#interfaces.get(type);
  }

  /** Of a value that is of all these types: its lists and objects have the members of each. */
  #joint(types, value, path) {
    const wrong = () => [`${path} is ${JSON.stringify(value)?.slice(0, 80)}, declared as ${types.join(' & ')}`];
    const items = types.map((type) => /^(?:readonly\s+)?([\s\S]+)\[\]$/.exec(type)?.[1]);
    if (items.every((item) => item !== undefined)) {
      if (!Array.isArray(value)) return wrong();
      return value.flatMap((item, index) => this.problems(items.join(' & '), item, `${path}/${index}`));
    }
    const objects = types.map((type) => this.#membersOf(type));
    if (objects.some((object) => object === undefined)) return this.problems(types[0], value, path);
    const all = new Map();
    for (const [name, member] of objects.flatMap((object) => [...object])) {
      const other = all.get(name);
      const optional = member.optional && (other?.optional ?? true);
      all.set(name, other ? { ...member, optional, type: `${other.type} & ${member.type}` } : member);
    }
    return this.#unlike(all, value, path, wrong);
  }

  #unlike(object, value, path, wrong) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong();
    const found = [];
    for (const [name, member] of object) {
      if (name in value) found.push(...this.problems(member.type, value[name], `${path}/${name}`));
      else if (!member.optional) found.push(`${path}/${name} is missing`);
    }
    for (const name of Object.keys(value)) {
      if (!object.has(name)) found.push(`${path}/${name} is not declared`);
    }
    return found;
  }
}
