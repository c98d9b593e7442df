// The engine's module with the conveniences of a library: documents and answers are values, files that a scenario
// needs are read when it needs them, what cannot run is an error with all its issues. Each operation is written once,
// as a generator that yields the files that it lacks and, between slices of a run, progress; `later` and `now` drive it.

/** Engine steps between two looks at the clock: a few milliseconds at most. */
const stepsPerSlice = 10_000;
/** So long may the thread be kept. */
const sliceMs = 12;

/** As the first module names the whole one, where a scenario asks for something that only that has. */
const wholeModule = 'servecast.wasm';
class NeedsWholeModule extends Error {}

/** A scenario that cannot run. `issues`: each with path, message and, for some, kind. */
export class ServecastError extends Error {
  constructor(issues) {
    super(issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('\n'));
    this.name = 'ServecastError';
    this.issues = issues;
  }
}

const parsed = (text) => (text === '' ? [] : JSON.parse(text));
const textOf = (document) => (typeof document === 'string' ? document : JSON.stringify(document));

/** The document with settings over it: by path, or as the command's --set has them ("engine.max_num_seqs=64"). */
function changed(module, document, set) {
  if (set === undefined) return document;
  if (!module.withSettings) throw new NeedsWholeModule();
  if (typeof set !== 'object' || set === null) {
    throw new ServecastError([
      { path: '', message: `set: found ${JSON.stringify(set)}; allowed: an object or a list` },
    ]);
  }
  const overrides = Array.isArray(set)
    ? set.map(String)
    : Object.entries(set).map(([path, value]) => `${path}=${JSON.stringify(value)}`);
  const none = Object.entries(set).find(([, value]) => value === undefined || Number.isNaN(value));
  if (none) throw new ServecastError([{ path: none[0], message: `set: found ${none[1]}; allowed: a JSON value` }]);
  const { text, issues } = JSON.parse(module.withSettings(textOf(document), overrides));
  if (issues.length > 0) throw new ServecastError(issues);
  return text;
}

/** Asks until no file is missing. */
function* complete(module, ask, issuesOf) {
  for (;;) {
    const answer = ask();
    const files = issuesOf(answer).flatMap(({ kind, path }) => (kind === 'missing_file' ? [path] : []));
    if (files.length === 0) return answer;
    if (files.includes(wholeModule)) throw new NeedsWholeModule();
    for (const file of files) {
      const refused = JSON.parse(module.provide(file, yield { file }));
      if (refused.length > 0) throw new ServecastError(refused);
    }
  }
}

function* canonical(module, document) {
  const ask = () => JSON.parse(module.canonical(textOf(document)));
  return yield* complete(module, ask, ({ issues }) => issues);
}

/** `make`: an object of the module that advances; `read`: its answer, before it is deleted. */
function* advanced(module, make, read, trace) {
  let run = null;
  const ask = () => {
    run?.delete();
    run = make();
    return run;
  };
  try {
    yield* complete(module, ask, () => parsed(run.error()));
    if (trace) run.setTrace(trace);
    const refused = () => {
      const issues = parsed(run.error()).filter(({ kind }) => kind !== 'missing_file');
      if (issues.length > 0) throw new ServecastError(issues);
    };
    refused();
    while (!run.advance(stepsPerSlice)) {
      // Advice may need the files of another GPU.
      yield* complete(
        module,
        () => 0,
        () => parsed(run.error()),
      );
      refused();
      yield { progress: run.progress() };
    }
    refused();
    return read(run);
  } finally {
    run?.delete();
  }
}

function* good(module, document) {
  const { issues } = yield* canonical(module, document);
  if (issues.length > 0) throw new ServecastError(issues);
}

const operations = {
  *canonical(module, document) {
    const { text, issues } = yield* canonical(module, document);
    if (issues.length > 0) throw new ServecastError(issues);
    return JSON.parse(text);
  },
  *validate(module, document) {
    return (yield* canonical(module, document)).issues;
  },
  *run(module, document, { columns = [], explain = false, once = false, set, trace } = {}) {
    const text = textOf(changed(module, document, set));
    yield* good(module, text);
    const make = () => (once ? new module.Simulation(text) : new module.Experiment(text, explain));
    return yield* advanced(
      module,
      make,
      (run) => ({
        report: JSON.parse(run.summary()),
        columns: Object.fromEntries(columns.map((name) => [name, run.column(name).slice()])),
        explanation: explain && !once ? JSON.parse(run.explanation()) : null,
      }),
      trace,
    );
  },
  *advise(module, document, { set, trace } = {}) {
    if (!module.Advice) throw new NeedsWholeModule();
    const text = textOf(changed(module, document, set));
    yield* good(module, text);
    return yield* advanced(
      module,
      () => new module.Advice(text),
      (run) => JSON.parse(run.summary()),
      trace,
    );
  },
  *plan(module, question, document, options = {}) {
    const {
      percent = 10,
      months = 36,
      spike = 2,
      spike_s = 60,
      input_price = 0,
      output_price = 0,
      hours = [],
      days = 5,
      windows = 0,
      set,
      trace,
    } = options;
    if (!module.Plan) throw new Error('plan: it is in servecast/full');
    const text = textOf(changed(module, document, set));
    yield* good(module, text);
    return yield* advanced(
      module,
      () =>
        new module.Plan(
          question,
          text,
          percent,
          months,
          spike,
          spike_s,
          input_price,
          output_price,
          hours,
          days,
          windows,
        ),
      (run) => ({ answer: JSON.parse(run.answer()), sentence: run.sentence() }),
      trace,
    );
  },
};

const planOptions = [
  'percent',
  'months',
  'spike',
  'spike_s',
  'input_price',
  'output_price',
  'hours',
  'days',
  'windows',
];
/** What each operation takes, beside onProgress and signal. */
const optionsOf = {
  canonical: [],
  validate: [],
  run: ['columns', 'explain', 'once', 'set', 'trace'],
  advise: ['set', 'trace'],
  plan: [...planOptions, 'set', 'trace'],
};

/** An option with a misspelled name would change nothing, and nobody would notice. */
function refuseUnknown(name, given) {
  const allowed = [...optionsOf[name], 'onProgress', 'signal'];
  const issues = Object.keys(given)
    .filter((each) => !allowed.includes(each))
    .map((each) => ({ path: '', message: `${name}: found the option ${each}; allowed: ${allowed.join(', ')}` }));
  if (issues.length > 0) throw new ServecastError(issues);
}

async function later(steps, { files, onProgress, signal }) {
  let since = performance.now();
  for (let next = steps.next(); ; ) {
    if (next.done) return next.value;
    try {
      signal?.throwIfAborted();
      if (next.value.file) {
        next = steps.next(await files(next.value.file));
        continue;
      }
      if (performance.now() - since > sliceMs) {
        onProgress?.(next.value.progress);
        await new Promise((resolve) => setTimeout(resolve));
        signal?.throwIfAborted();
        since = performance.now();
      }
    } catch (error) {
      // Its run is deleted.
      steps.return();
      throw error;
    }
    next = steps.next();
  }
}

function now(steps, { files, onProgress }) {
  for (let next = steps.next(); ; ) {
    if (next.done) return next.value;
    const { file, progress } = next.value;
    if (!file) onProgress?.(progress);
    next = steps.next(file && files(file));
  }
}

/** Over a module that was made. `asked(name, values, options)` drives an operation. */
function overModule(module, asked) {
  const scenarios = () => JSON.parse(module.catalog()).presets.scenarios;
  return {
    /** The whole boundary, as ./engine/servecast.d.ts has it. */
    module,
    version: JSON.parse(module.version()).engine_version,
    catalog: () => JSON.parse(module.catalog()),
    presets: () => scenarios().map(({ id }) => id),
    preset(id) {
      const found = scenarios().find((each) => each.id === id);
      if (found) return found.document;
      const allowed = scenarios()
        .map((each) => each.id)
        .join(', ');
      throw new ServecastError([{ path: '', message: `found the preset ${JSON.stringify(id)}; allowed: ${allowed}` }]);
    },
    validate: (document) => asked('validate', [document]),
    canonical: (document) => asked('canonical', [document]),
    run: (document, options) => asked('run', [document], options),
    advise: (document, options) => asked('advise', [document], options),
    plan: (question, document, options) => asked('plan', [question, document], options),
  };
}

async function compiled(wasm) {
  const source = await wasm;
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const response = source instanceof Response ? source : await fetch(source);
  if (!response.ok) throw new Error(`the engine could not be loaded: ${response.url} answered ${response.status}`);
  // compileStreaming wants a MIME type that some servers do not send.
  return WebAssembly.compile(await response.arrayBuffer());
}

async function opened(create, wasm) {
  const program = await compiled(wasm);
  return create({
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(program, imports).then(done);
      return {};
    },
  });
}

function openedNow(create, source) {
  const program = source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source);
  // Emscripten makes its module of the very object that it is given.
  const module = {
    instantiateWasm(imports, done) {
      const instance = new WebAssembly.Instance(program, imports);
      done(instance);
      return instance.exports;
    },
  };
  create(module);
  return module;
}

/**
 * createServecast of a module. `create`: Emscripten's factory; `wasm()` and `files(path)`: where its program and its
 * presets are unless the caller says otherwise; `whole()`: factory and program of the whole module, for a first one.
 */
export function opener(create, wasm, files, whole) {
  return async (options = {}) => {
    const module = await opened(create, options.wasm ?? wasm());
    let larger = null;
    const asked = async (name, values, more = {}) => {
      refuseUnknown(name, more);
      const ask = (by) => later(operations[name](by, ...values, more), { ...more, files: options.files ?? files });
      if (larger) return ask(await larger);
      try {
        return await ask(module);
      } catch (error) {
        if (!(error instanceof NeedsWholeModule)) throw error;
        larger ??= whole().then((found) => opened(found.create, found.wasm));
        // One that could not be loaded is asked for again.
        larger.catch(() => (larger = null));
        return ask(await larger);
      }
    };
    return overModule(module, asked);
  };
}

/** createServecastSync: at once, from a program that is in memory; its operations answer at once, too. */
export function syncOpener(create, wasm, files, whole) {
  return (options = {}) => {
    const module = openedNow(create, options.wasm ?? wasm());
    let larger = null;
    const asked = (name, values, more = {}) => {
      refuseUnknown(name, more);
      const ask = (by) => now(operations[name](by, ...values, more), { ...more, files: options.files ?? files });
      if (larger) return ask(larger);
      try {
        return ask(module);
      } catch (error) {
        if (!(error instanceof NeedsWholeModule)) throw error;
        const found = whole();
        larger = openedNow(found.create, found.wasm);
        return ask(larger);
      }
    };
    return overModule(module, asked);
  };
}
