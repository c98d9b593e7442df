// Tells the built page that the documentation lies beside it, in docs/: its footer then leads there.
import { readFileSync, writeFileSync } from 'node:fs';

const page = new URL('../dist/index.html', import.meta.url);
writeFileSync(
  page,
  readFileSync(page, 'utf8').replace(/<html lang="en"(?: data-docs)?>/, '<html lang="en" data-docs>'),
);
