import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listLoaded } from '../support/loaded-files.ts';
import { programFile } from '../support/program.ts';
import { countOption, readScript } from '../support/script-options.ts';
import { canMeasure, readUsage } from './compare/process-usage.ts';
import { startProcess, stopProcess } from './subjects/processes.ts';

/**
 * Measures a start in pairs with `node -e 0`: the CPU time and the time until a gateway on a new SQLite database is ready, its
 * memory when it has been idle, the modules loaded by then, what short commands take, and for how long the first use of what
 * is loaded late holds up the event loop.
 */
const { rounds, idle } = readScript({
  name: 'bench start',
  options: {
    rounds: countOption('starts of each kind', 10),
    idle: countOption('seconds without a request before memory is read', 10),
  },
});
if (!canMeasure) throw new Error('CPU and memory are read from /proc, which only Linux has');

const token = 'an-admin-token-for-benches';
/** The first key, which is the last thing that a start prints. */
const firstKey = /\n\s+(sk-\S+)/;

const serve = ['--max-semi-space-size=8', programFile, 'serve', '--port', '0', '--admin-port', '0'];

/** What is loaded when it is used for the first time, and a request that does so. */
const firstUses: Readonly<Record<string, (gateway: Gateway) => Promise<unknown>>> = {
  'token tables': ({ url, key }) =>
    read(`${url}/v1/chat/completions`, key, { model: 'demo', messages: [{ role: 'user', content: 'x' }] }),
  console: ({ adminUrl }) => read(`${adminUrl}/console/`, token),
  docs: ({ adminUrl }) => read(`${adminUrl}/docs/`, token),
  metrics: ({ adminUrl }) => read(`${adminUrl}/metrics`, token),
};

interface Gateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
}

/**
 * Sends, when asked, the longest stall of the event loop in milliseconds since it was asked before. An interval of 1 ms sees
 * stalls exactly, and is a part of each that is measured.
 */
const watchStalls = `data:text/javascript,
  import { monitorEventLoopDelay } from 'node:perf_hooks';
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  process.on('message', () => {
    process.send(delays.max / 1e6 - 1);
    delays.reset();
  });
  process.channel.unref();`;

const figures = new Map<string, number[]>();
const note = (name: string, value: number): void =>
  void figures.set(name, [...(figures.get(name) ?? []), value]);

// What the first of them compiles is kept for all others.
for (const args of [serve, [programFile, '--help']]) await startOnce(args, async () => {});
for (let round = 0; round < rounds; round++) {
  await timeCommand('node -e 0', ['-e', '0']);
  await timeCommand('--version', [programFile, '--version']);
  await timeCommand('--help', [programFile, '--help']);
  await timeCommand('config check', [programFile, 'config', 'check', 'config/textgate.example.yaml']);
  await startOnce(serve, measureStart);
  await startOnce(['--import', watchStalls, ...serve], measureFirstUses);
}
const loaded = await countLoaded();

const median = (name: string): number =>
  (figures.get(name) ?? []).toSorted((a, b) => a - b)[rounds >> 1] ?? 0;
const bareCpu = median('node -e 0, CPU ms');
for (const [name, values] of figures) {
  const shown = [Math.min(...values), median(name), Math.max(...values)].map((value) =>
    value.toFixed(0).padStart(6),
  );
  const factor = name.endsWith('CPU ms') ? `  ${(median(name) / bareCpu).toFixed(1)} x node -e 0` : '';
  print(`${name.padEnd(46)}${shown.join('')}${factor}`);
}
print(`modules loaded until ready: ${loaded.files} files, ${loaded.builtins} of Node`);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The time of a command in milliseconds, and its CPU time. */
async function timeCommand(name: string, args: readonly string[]): Promise<void> {
  const startedMs = performance.now();
  const child = startProcess('/bin/sh', ['-c', '"$0" "$@"; times >&2', process.execPath, ...args], {
    cwd: join(import.meta.dirname, '..', '..'),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${name} ended with code ${code}: ${said}`);
  note(`${name}, ms`, performance.now() - startedMs);
  // The second line of what `times` prints is of the shell's children: user and system time, as in 0m0.040s.
  const [, children = ''] = said.trim().split('\n').slice(-2);
  const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => Number(minutes) * 60 + Number(rest),
  );
  note(`${name}, CPU ms`, seconds.reduce((sum, value) => sum + value, 0) * 1_000);
}

interface Started {
  readonly child: ChildProcess;
  readonly startedMs: number;
  /** What it has written by the time it is ready. */
  readonly said: string;
}

/** Starts a gateway in a new folder, measures it and ends it. */
async function startOnce(
  args: readonly string[],
  measure: (started: Started) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
  const startedMs = performance.now();
  const child = startProcess(process.execPath, args, {
    cwd: folder,
    env: { TEXTGATE_ADMIN_TOKEN: token },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  try {
    const said = await untilSaid(child.stderr, firstKey, child);
    if (said !== null) await measure({ child, startedMs, said });
  } finally {
    await stopProcess(child);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureStart({ child: { pid = 0 }, startedMs }: Started): Promise<void> {
  note('ready, ms', performance.now() - startedMs);
  note('ready, CPU ms', readUsage([pid]).cpuMs);
  await sleep(idle * 1_000);
  note(`memory after ${idle} s, MiB`, readUsage([pid]).rssBytes / 1_048_576);
}

/** Uses what is loaded late. */
async function measureFirstUses({ child, said }: Started): Promise<void> {
  const [, url = '', adminUrl = ''] = /serves (\S+)\/v1 \(admin: (\S+)\)/.exec(said) ?? [];
  const gateway = { url, adminUrl, key: firstKey.exec(said)?.[1] ?? '' };
  // Until what goes on behind a start is over.
  await sleep(2_000);
  for (const [name, use] of Object.entries(firstUses)) {
    await longestStallMs(child);
    await use(gateway);
    await sleep(50);
    note(`first use of ${name}: longest stall, ms`, await longestStallMs(child));
  }
}

/** The output up to a pattern; `null` where the process ends before. */
async function untilSaid(
  stream: NodeJS.ReadableStream | null,
  pattern: RegExp,
  child: ReturnType<typeof startProcess>,
) {
  let said = '';
  return new Promise<string | null>((resolve) => {
    child.once('close', () => resolve(null));
    stream?.on('data', (text: Buffer) => {
      said += text.toString();
      if (pattern.test(said)) resolve(said);
    });
  });
}

/** The longest stall since the last call, in milliseconds. */
async function longestStallMs(child: ChildProcess): Promise<number> {
  child.send('stall');
  const [stallMs] = (await once(child, 'message')) as [number];
  return stallMs;
}

async function read(url: string, bearer: string, body?: object): Promise<string> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
  const response = await fetch(url, { ...init, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return text;
}

/** How many files and modules of Node a gateway has loaded when it is ready, in its main thread. */
async function countLoaded(): Promise<{ files: number; builtins: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
  const child = startProcess(process.execPath, ['--import', listLoaded, ...serve], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
  await untilSaid(child.stderr, firstKey, child);
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  rmSync(folder, { recursive: true, force: true });
  const urls = JSON.parse(/^loaded (.*)$/m.exec(said)?.[1] ?? '[]') as readonly string[];
  return {
    files: urls.filter((url) => url.startsWith('file:')).length,
    builtins: urls.filter((url) => url.startsWith('node:')).length,
  };
}
