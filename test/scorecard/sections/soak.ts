import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { spoolOf } from '../../../src/storage/database-files.ts';
import { databaseIn, servedModel } from '../../chaos/served-process.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { metricsOf, metricSum, requestsInFlight } from '../gateway-state.ts';
import { growthOf } from '../growth.ts';
import { question } from '../request-kinds.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { oneOfDay } from '../soak/day-requests.ts';
import { startSubject } from '../subject.ts';
import type { Subject } from '../subject.ts';

/** The requests of a day at one a second, sent as fast as they are answered. */
const requestsPerDay = 86_400;
const hours = 24;
/** The hours in which caches fill and code is compiled: growth is measured behind them. */
const warmUpHours = 8;
const atATime = 8;
const answerMs = 4;
/** The most that a measure may grow from the end of the warm-up to the end of the day. */
const maxHeapGrowth = 0.05;
const maxRssGrowth = 0.1;
const maxMoreHandles = 8;
/** How long a reload, a probe or the end of running requests may take, in milliseconds. */
const patienceMs = 10_000;

interface Sample {
  readonly heapUsed: number;
  readonly rss: number;
  readonly handles: number;
  readonly timers: number;
  readonly series: number;
}

export const section: Section = {
  name: 'soak',
  title: 'The requests of a day',
  about:
    'As many requests as one a second brings in 24 hours, sent as fast as they are answered: whole and streamed, of both ' +
    'protocols, with clients that leave, an upstream that is away, refusals, changes of keys, and a reload per hour. From ' +
    `the ${warmUpHours}th hour on neither heap, resident memory, handles, timers nor metric series may grow. The clock is ` +
    'the real one: what ages with time alone is not sped up.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startNumberedUpstream({ answerMs: () => answerMs });
    const probeFile = join(tmpdir(), `textgate-probe-${process.pid}`);
    const away = { routes: [{ upstream: 'away', model: 'm' }], free: true };
    const offered = servedModel(upstream.url) as { upstreams: object; models: object };
    const subject = await startSubject({
      name: 'soak',
      upstreamUrl: upstream.url,
      more: {
        upstreams: { ...offered.upstreams, away: { url: 'http://127.0.0.1:9/v1' } },
        models: { ...offered.models, away },
      },
      nodeOptions: ['--expose-gc'],
      imports: [join(import.meta.dirname, '..', 'memory-probe.ts')],
      environment: { MEMORY_PROBE_FILE: probeFile },
    });
    let asked = Number(question);
    const acknowledged = new Map<string, number>();
    const day = { subject, nextQuestion: () => String(++asked), acknowledged };
    const faults: string[] = [];
    const counts = new Map<string, number>();
    const samples: Sample[] = [];
    const perHour = Array.from({ length: Math.ceil((requestsPerDay * scale) / hours) });

    for (let hour = 1; hour <= hours; hour++) {
      await forEachOf(perHour, atATime, async () => {
        // Chance of its own: what others draw meanwhile depends on how fast they are answered.
        const own = seededNumbers(random() * 2 ** 32);
        const [name, request] = oneOfDay(own);
        counts.set(name, (counts.get(name) ?? 0) + 1);
        const fault = await request({ ...day, random: own }).catch(String);
        if (fault !== null) faults.push(`hour ${hour}: ${fault}`);
      });
      if (!(await reload(subject, hour))) faults.push(`hour ${hour}: the config was not reloaded`);
      const sample = await sampleOf(subject, probeFile, samples.length);
      samples.push(sample);
      log(
        `hour ${hour}: heap ${mebibytes(sample.heapUsed)}, RSS ${mebibytes(sample.rss)}, ${sample.handles} handles, ` +
          `${sample.timers} timers, ${sample.series} series`,
      );
    }
    const metrics = await metricsOf(subject.served);
    for (const name of ['textgate_log_lines_dropped_total', 'textgate_streams_open'])
      if (metricSum(metrics, name) !== 0) faults.push(`${name} is ${metricSum(metrics, name)} at the end`);
    // Its space is allocated in advance: zeros follow its lines.
    const spooled = readFileSync(spoolOf(databaseIn(subject.folder))).indexOf(0);
    if (spooled !== 0) faults.push(`the spool has ${spooled} bytes of settlements at the end`);
    const settled = samples.slice(warmUpHours);
    const found = growths(settled);
    faults.push(...found.faults, ...(await subject.finish(acknowledged, upstream.served)));
    upstream.close();
    rmSync(probeFile);
    return {
      cases: perHour.length * hours,
      facts: [...[...counts].toSorted(([a], [b]) => a.localeCompare(b)), ['reloads', hours], ...found.facts],
      faults,
    };
  },
};

function growths(samples: readonly Sample[]) {
  const shares = { heapUsed: maxHeapGrowth, rss: maxRssGrowth };
  const facts: (readonly [string, string])[] = [];
  const faults: string[] = [];
  for (const [measure, most] of Object.entries(shares) as ['heapUsed' | 'rss', number][]) {
    const values = samples.map((sample) => sample[measure]);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const growth = growthOf(values) / mean;
    const shown = `${(growth * 100).toFixed(1)} % of ${mebibytes(mean)}, at most ${most * 100} %`;
    facts.push([`growth of ${measure === 'rss' ? 'resident memory' : 'the heap'}`, shown]);
    if (growth > most) faults.push(`${measure} grew by ${shown}`);
  }
  for (const measure of ['handles', 'timers', 'series'] as const) {
    const values = samples.map((sample) => sample[measure]);
    const growth = growthOf(values);
    facts.push([`growth of ${measure}`, `${growth.toFixed(1)} of ${values[0]}, at most ${maxMoreHandles}`]);
    if (growth > maxMoreHandles) faults.push(`${measure} grew from ${values.join(', ')}`);
  }
  return { facts, faults };
}

/** What the process has when nothing runs, after a garbage collection. */
async function sampleOf(subject: Subject, probeFile: string, before: number): Promise<Sample> {
  await until(async () => (await requestsInFlight(subject.served)) === 0);
  subject.served.child.kill('SIGUSR2');
  const lines = (): readonly string[] =>
    existsSync(probeFile) ? readFileSync(probeFile, 'utf8').split('\n').slice(0, -1) : [];
  await until(() => Promise.resolve(lines().length > before));
  const series = (await metricsOf(subject.served)).split('\n').filter((line) => line.startsWith('textgate_'));
  return { ...(JSON.parse(lines()[before] ?? '') as Omit<Sample, 'series'>), series: series.length };
}

/** Changes a setting of the config file; resolves with whether it came into force. */
async function reload({ served, folder, config }: Subject, hour: number): Promise<boolean> {
  const limits = { concurrency: 1_000 + hour, requestsPerMinute: 100_000_000 };
  const text = JSON.stringify({ ...config, limits, admin: { port: 0, token: served.adminToken } });
  writeFileSync(join(folder, 'textgate.yaml'), text);
  const name = 'textgate_config_reloads_total';
  const before = metricSum(await metricsOf(served), name);
  served.child.kill('SIGHUP');
  return until(async () => metricSum(await metricsOf(served), name) > before);
}

async function until(isTrue: () => Promise<boolean>): Promise<boolean> {
  const startMs = performance.now();
  while (performance.now() - startMs < patienceMs) {
    if (await isTrue()) return true;
    await wait(20);
  }
  return false;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
