import type { BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '../support/browser/launch.ts';
import { consoleUrl, login } from '../support/browser/login.ts';
import { secretOf } from '../support/filled-database.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { startBenchGateway } from './bench-gateway.ts';
import type { BenchGateway } from './bench-gateway.ts';
import { fillAudit, fillHistory } from './console/fill-views.ts';
import { openStreams, startHeldUpstream } from './console/held-upstream.ts';
import { steps, timeStep } from './console/time-steps.ts';
import { openView, timeView } from './console/time-view.ts';

/**
 * Measures the console in front of a large database while streams are open: how long each view takes until it is usable, how
 * long steps in views take from the click until their result is painted, and what open consoles cost the clients.
 * `npm run bench console -- --keys 10000 --records 1000000 --streams 1000`
 */
const { keys, records, streams, rounds, seconds, seed, audit } = readScript({
  name: 'bench console',
  options: {
    keys: countOption('keys in the database', 10_000),
    records: countOption('records in it', 1_000_000),
    audit: countOption('lines of the audit in it', 100_000),
    streams: countOption('streams that are open meanwhile', 1_000),
    rounds: countOption('how often each view is opened, and the load runs without and with consoles', 5),
    seconds: countOption('how long each load takes', 10),
    seed: seedOption(19),
  },
});
const random = seededNumbers(seed);

/** How many watch during a load, and how many requests begin in a second of each. */
const watchers = 3;
const perSecond = 200;

/** Reads a stream until it ends or is stopped. */
const readToEnd = async ({ body }: Response): Promise<void> =>
  body?.pipeTo(new WritableStream()).catch(() => {});

/** Begins to watch; resolves with what ends it. */
type Watch = () => Promise<() => Promise<void>>;

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const ms = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} ms`.padStart(12);

/** Opens every view as often as there are rounds; the first time its files are not in the browser's cache. */
async function timeViews(context: BrowserContext, page: Page, url: string): Promise<void> {
  const links = page.getByRole('navigation', { name: 'Views' }).getByRole('link');
  const views: readonly string[] = await links.evaluateAll((found: { readonly hash: string }[]) =>
    found.map(({ hash }) => hash),
  );
  print('view             usable: middle     slowest first paint longest task');
  for (const view of views) {
    const times = [];
    for (let round = 0; round < rounds; round++) times.push(await timeView(context, url + view));
    const usable = times.map(({ usableMs }) => usableMs);
    const paint = middle(times.map(({ firstPaintMs }) => firstPaintMs));
    const longest = Math.max(...times.map(({ longestTaskMs }) => longestTaskMs));
    print(
      `  ${view.slice(2).padEnd(15)}${ms(middle(usable))}${ms(Math.max(...usable))}${ms(paint)}${ms(longest)}`,
    );
  }
}

/**
 * Who watches during a load: none; followers of the status, which cost the gateway what a console does; and consoles, whose
 * browser takes its own share of the machine.
 */
function watchesOf({ forget: { url, token } }: BenchGateway, context: BrowserContext): Map<string, Watch> {
  const several = async <Opened>(open: () => Promise<Opened>): Promise<Opened[]> =>
    Promise.all(Array.from({ length: watchers }, open));
  return new Map<string, Watch>([
    ['no watchers', async () => async () => {}],
    [
      `${watchers} followers`,
      async () => {
        const stop = new AbortController();
        const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
        const answers = await several(() => fetch(`${url}/admin/status`, { headers, signal: stop.signal }));
        const reading = answers.map(readToEnd);
        return async () => {
          stop.abort();
          await Promise.all(reading);
        };
      },
    ],
    [
      `${watchers} consoles`,
      async () => {
        const pages = await several(() => openView(context, `${consoleUrl(url)}#/now`));
        return async () => void (await Promise.all(pages.map((page) => page.close())));
      },
    ],
  ]);
}

/** Does every step as often as there are rounds. */
async function timeSteps(page: Page, url: string): Promise<void> {
  print('step                           middle     slowest');
  for (const step of steps) {
    const times = [];
    for (let round = 0; round < rounds; round++) times.push(await timeStep(page, url, step));
    print(`  ${step.name.padEnd(22)}${ms(middle(times))}${ms(Math.max(...times))}`);
  }
}

/** Runs the load with each kind of watchers in turn, so that all have the same machine. */
async function compareLoads(gateway: BenchGateway, context: BrowserContext): Promise<void> {
  const watches = watchesOf(gateway, context);
  const found = new Map<string, number[]>([...watches.keys()].map((name) => [name, []]));
  const load = { perSecond, durationMs: seconds * 1_000 };
  print(`whole requests, ${perSecond} a second for ${seconds} s`);
  for (let round = 0; round < rounds; round++)
    for (const [name, watch] of watches) {
      const stop = await watch();
      const { p99Ms, medianMs, failures } = await gateway.load(load, Math.min(keys, 100));
      await stop();
      found.get(name)?.push(p99Ms);
      const lost = Object.entries(failures).map(([status, count]) => `, ${count} x ${status}`);
      print(`  ${name}: median ${ms(medianMs).trim()}, p99 ${ms(p99Ms).trim()}${lost.join('')}`);
    }
  for (const [name, p99s] of found)
    print(`  ${name}: p99 in the middle ${ms(middle(p99s)).trim()}, at most ${ms(Math.max(...p99s)).trim()}`);
}

const upstream = await startHeldUpstream();
print(`${keys} keys, ${records} records, ${audit} lines of the audit, ${streams} streams, seed ${seed}`);
const gateway = await startBenchGateway({
  keys,
  records,
  // One follows every millisecond, so the last one was made just now.
  startMs: Date.now() - records,
  heldUrl: upstream.url,
  prepare: async (engine) => {
    await fillHistory(engine, Date.now(), random);
    await fillAudit(engine, audit, Date.now());
  },
});
const browser = await launchBrowser();
try {
  const held = await openStreams(gateway.url, streams, () => secretOf(Math.floor(random() * keys)));
  print(`${streams} streams are open`);
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
  const { url: adminUrl, token } = gateway.forget;
  const page = await context.newPage();
  await login(page, adminUrl, token);
  await timeViews(context, page, consoleUrl(adminUrl));
  await timeSteps(page, consoleUrl(adminUrl));
  await page.close();
  await compareLoads(gateway, context);
  print(`streams that were lost: ${held.lost()}`);
  held.close();
} finally {
  await browser.close();
  upstream.close();
  await gateway.close();
}
