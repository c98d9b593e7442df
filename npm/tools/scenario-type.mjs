// The TypeScript type of a scenario document from the catalogue's fields: every key with its help, unit, range and
// default. Optional is what has a default, what a preset beside it has, and what is there for some choices only.

const types = {
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  text: 'string',
  list: 'readonly unknown[]',
  object: 'Readonly<Record<string, unknown>>',
};

function commentOf({ help, unit, minimum, maximum, default: value, choices }) {
  const range = minimum === null && maximum === null ? '' : `${minimum ?? '...'} to ${maximum ?? '...'}`;
  const usual = value === null || choices.length > 12 ? '' : `default ${JSON.stringify(value)}`;
  const more = [[range, unit].filter(Boolean).join(' '), usual].filter(Boolean).join('; ');
  const sentence = `${help.charAt(0).toUpperCase()}${help.slice(1)}`;
  return `/** ${[sentence, more].filter(Boolean).join('. ').replaceAll('*/', '*\\/')} */`;
}

/** Fields as a tree by the parts of their paths; "-" is an item of a list. */
function treeOf(fields) {
  const tree = { children: new Map() };
  for (const field of fields) {
    let node = tree;
    for (const part of field.path.slice(1).split('/')) {
      if (!node.children.has(part)) node.children.set(part, { children: new Map() });
      node = node.children.get(part);
    }
    // A path may be there once for each choice that it belongs to.
    node.fields = [...(node.fields ?? []), field];
  }
  return tree;
}

function typeOf(node, indent) {
  const alternatives = new Set();
  for (const { type, choices } of node.fields ?? []) {
    if (type === 'choice') for (const choice of choices) alternatives.add(JSON.stringify(choice));
    else alternatives.add(types[type]);
  }
  if (node.children.has('-')) alternatives.add(`readonly (${typeOf(node.children.get('-'), indent)})[]`);
  else if (node.children.size > 0) alternatives.add(objectOf(node, indent));
  return [...alternatives].join(' | ');
}

function objectOf(node, indent) {
  const inner = `${indent}  `;
  const lines = [...node.children].flatMap(([name, child]) => {
    const comment = child.fields ? [`${inner}${commentOf(child.fields[0])}`] : [];
    const needed = child.fields?.some(({ required, when }) => required && !when) && !node.children.has('preset');
    return [...comment, `${inner}readonly ${name}${needed ? '' : '?'}: ${typeOf(child, inner)};`];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

/** `presets`: by kind; those that are files of their own are no choices of the fields. */
export function scenarioType({ fields: all, presets, schema, engine_version: version }) {
  const ids = { '/model/preset': presets.models, '/hardware/preset': presets.hardware };
  const fields = all.map((field) => {
    const more = ids[field.path]?.map(({ id }) => id) ?? [];
    return { ...field, choices: [...new Set([...field.choices, ...more])] };
  });
  const head = `// A scenario document, made from the catalogue of version ${version}.\nexport interface Scenario `;
  const type = objectOf(treeOf(fields), '').replace('{\n', `{\n  readonly schema: ${schema};\n`);
  return `${head}${type.replace(/^ {2}readonly (model|hardware|workload)\?/gm, '  readonly $1')}\n`;
}
