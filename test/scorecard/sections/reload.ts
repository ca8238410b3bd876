import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { loadConfigFile } from '../../../src/config/load.ts';
import { askNumber } from '../../chaos/numbered-client.ts';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { metricsOf } from '../gateway-state.ts';
import { mutate } from '../mutate-text.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';
import type { Subject } from '../subject.ts';

const files = 200;
/** Every so many files there is a good one. */
const goodEvery = 10;
const clients = 4;
/** How long a reload may take, in milliseconds. */
const maxReloadMs = 60_000;

export const section: Section = {
  name: 'reload',
  title: 'Broken config files under load',
  about:
    'Config files with cut, spoilt, missing, wrong and surplus parts replace the good one while clients ask without a ' +
    'pause. No request may fail, each broken file is refused whole and counted, the old config stays in force, and a good ' +
    'file is taken again.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startNumberedUpstream();
    const subject = await startSubject({ name: 'reload', upstreamUrl: upstream.url });
    const { url } = subject.served;
    const faults: string[] = [];
    const acknowledged: Acknowledged = new Map();
    const over = new AbortController();
    let asked = 0;
    const load = Array.from({ length: clients }, async () => {
      while (!over.signal.aborted) {
        const status = await askNumber(url, subject.key, asked++ % 2 === 0, acknowledged).catch(String);
        if (status !== 200) faults.push(`a request ended with ${status}`);
      }
    });

    const tried = Math.ceil(files * scale);
    const taken = { good: 0, broken: 0 };
    let models = await modelsOf(subject);
    for (let number = 1; number <= tried; number++) {
      const isGood = number % goodEvery === 0;
      const text = isGood ? goodText(subject, number) : brokenText(subject, number, random);
      const counter = isGood ? 'ok' : 'failed';
      const before = await reloads(subject, counter);
      reloadWith(subject, text);
      if (!(await reaches(subject, counter, before + 1)))
        faults.push(`file ${number} is not counted as ${counter}: ${JSON.stringify(text).slice(0, 100)}`);
      const found = await modelsOf(subject);
      if (isGood) models = [`good-${number}`, 'small'].toSorted();
      if (found.join() !== models.join())
        faults.push(`after file ${number} the models are ${found.join()}, not ${models.join()}`);
      taken[isGood ? 'good' : 'broken']++;
      if (number % 50 === 0) log(`${number} files, ${asked} requests`);
    }
    over.abort();
    await Promise.all(load);
    if (acknowledged.size !== asked) faults.push(`${asked - acknowledged.size} answers were not whole`);
    faults.push(...(await subject.finish(acknowledged, upstream.served)));
    upstream.close();
    return {
      cases: tried,
      facts: [
        ['broken files refused', taken.broken],
        ['good files taken between them', taken.good],
        ['requests meanwhile', asked],
        ['whole answers', acknowledged.size],
      ],
      faults,
    };
  },
};

/** A good file offers a model of its own beside the one that is asked. */
function goodText({ config, served }: Subject, number: number): string {
  const { models, ...rest } = config as { models: Record<string, object> };
  const more = { [`good-${number}`]: models['small'], ...models };
  return JSON.stringify({ ...rest, models: more, admin: { port: 0, token: served.adminToken } });
}

/** One that would offer another model, if it was not broken. Files that are still good are not used. */
function brokenText(subject: Subject, number: number, random: () => number): string {
  const whole = goodText(subject, number).replace('good-', 'broken-');
  for (;;) {
    const text = mutate(whole, random);
    try {
      loadConfigFile(join(subject.folder, 'textgate.yaml'), {}, {}, text);
    } catch {
      return text;
    }
  }
}

/** Replaces the file at once, as editors and deployments do, and signals. */
function reloadWith({ folder, served }: Subject, text: string): void {
  const file = join(folder, 'textgate.yaml');
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
  served.child.kill('SIGHUP');
}

async function reloads({ served }: Subject, result: 'ok' | 'failed'): Promise<number> {
  const pattern = new RegExp(`^textgate_config_reloads_total\\{result="${result}"\\} (\\d+)$`, 'm');
  return Number(pattern.exec(await metricsOf(served))?.[1] ?? 0);
}

async function reaches(subject: Subject, result: 'ok' | 'failed', count: number): Promise<boolean> {
  const startMs = performance.now();
  while (performance.now() - startMs < maxReloadMs) {
    if ((await reloads(subject, result)) >= count) return true;
    await wait(10);
  }
  return false;
}

async function modelsOf({ served, key }: Subject): Promise<readonly string[]> {
  const response = await fetch(`${served.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await response.json()) as { data: readonly { id: string }[] };
  return data.map(({ id }) => id).toSorted();
}
