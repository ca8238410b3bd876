import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const page = join(import.meta.dirname, '..', '..', 'docs', 'contributors', 'performance.md');

/** How many events a second a stream has in the figures of paced streams. */
const eventsPerSecond = 20;

/** The share of a core for which to plan. */
const plannedShare = 0.7;

/** The documentation's table of what one process carries, from the medians on the page of figures. */
export function writeSizingTable(): string {
  const text = readFileSync(page, 'utf8');
  const median = (title: string): number => {
    const row = text.split('\n').find((line) => line.startsWith(`| ${title}`));
    const [, value = ''] = /^\|[^|]*\| ([\d.]+) /.exec(row ?? '') ?? [];
    if (value === '') throw new Error(`docs/contributors/performance.md has no figure '${title}'`);
    return Number(value);
  };
  const answerMicros = median('Whole answers, 32 at once: CPU per request');
  const eventMicros = median('500 streams with 20 events a second each: CPU per event');
  const idleMb = median('Start, and 2,000 open streams: memory when idle');
  const streamKb = median('Start, and 2,000 open streams: memory per open stream');
  const longKb = median('2,000 open streams with prompts of 100 KB: memory per open stream');
  const perCore = (micros: number): string => round((1e6 / micros) * plannedShare);
  const rows: readonly (readonly [string, string, string])[] = [
    ['whole answers a second', perCore(answerMicros), `${answerMicros} µs each`],
    [
      `streams with ${eventsPerSecond} events a second each`,
      perCore(eventMicros * eventsPerSecond),
      `${eventMicros} µs for each event`,
    ],
    ['memory when idle', `${idleMb} MB`, 'the process, its threads and the database'],
    ['memory of 1,000 open streams', `${round(streamKb)} MB more`, `${streamKb} KB each`],
    ['memory of 1,000 open streams with prompts of 100 KB', `${round(longKb)} MB more`, `${longKb} KB each`],
  ];
  return [
    `| one process, at ${plannedShare * 100} % of a core | carries or takes | because |`,
    '|---|---|---|',
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

/** A number with two digits that count: more would pretend to be exact. */
function round(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en');
}
