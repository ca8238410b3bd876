import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { longScripts } from './long-scripts.ts';

// Runs one of the long scripts, such as `npm run bench start -- --rounds 4`: CONTRIBUTING.md says what each of them does.
const [kind = '', ...given] = process.argv.slice(2);
const named = longScripts[kind] ?? {};
const [first = ''] = Object.keys(named);
const name = given[0]?.startsWith('-') === false ? given.shift() : undefined;
const file = named[name ?? first];

if (file === undefined || (name === undefined && given.includes('--help'))) {
  const list = `npm run ${kind} [${Object.keys(named).join(' | ')}] -- [options]
The first one needs no name. What each does is in CONTRIBUTING.md; its options: npm run ${kind} ${first} -- --help
`;
  if (file === undefined) process.stderr.write(`there is no ${kind} '${name ?? ''}'\n\n${list}`);
  else process.stdout.write(list);
  process.exitCode = file === undefined ? 2 : 0;
} else {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, file), ...given], {
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
}
