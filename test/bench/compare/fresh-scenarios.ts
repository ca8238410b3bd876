import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { streams, wholeAnswers } from './orders.ts';
import { processTree, readUsage } from './process-usage.ts';
import { plainFigure, quickShare } from './scenario.ts';
import type { Figure, Scenario } from './scenario.ts';
import type { Measured, Stage } from './stage.ts';
import type { RunningSubject } from '../subjects/subject.ts';

/** How long a subject that has started is left idle before its memory is read, in milliseconds. */
const idleMs = 1_000;

/** How long all streams are open before memory is read, in milliseconds. */
const steadyMs = 1_500;

/** How many streams are open at once. */
const openStreams = 2_000;

const promptBytes = 100_000;

/** The reader of an endless stream: its pause after each read, and for how long it reads, in milliseconds. */
const readPauseMs = 20;
const slowReadMs = 5_000;
const quickSlowReadMs = 2_000;

/** For how long another one reads before it, in milliseconds. */
const firstSlowReadMs = 500;

const perStream = plainFigure('perStream', 'memory per open stream', 'KB', 1);

/** Sends enough of both kinds that what every process allocates once is allocated. */
export async function warmUp(stage: Stage, running: RunningSubject): Promise<void> {
  const settings = { bodyBytes: 700, textEvents: 20, intervalMs: 1 };
  await stage.measure(running, wholeAnswers(running, { requests: 500, atOnce: 32, settings }));
  await stage.measure(running, streams(running, { requests: 100, atOnce: 50, settings }));
}

function openScenario(name: string, title: string, figures: readonly Figure[], prompt: number): Scenario {
  return {
    name,
    title,
    figures,
    isFresh: true,
    fits: (subject) => subject.name !== 'direct',
    warmUp: async () => {},
    async run(stage, running, { isQuick }) {
      const open = isQuick ? openStreams * quickShare : openStreams;
      await sleep(idleMs);
      const idleBytes = running.pid === null ? 0 : readUsage(processTree(running.pid)).rssBytes;
      await warmUp(stage, running);
      const settings = { textEvents: 2, held: 1, intervalMs: 500 };
      const sending = {
        requests: open,
        atOnce: open,
        startsPerSecond: 1_000,
        settings,
        promptBytes: prompt,
      };
      const measured = await stage.measure(running, streams(running, sending), steadyMs);
      const added = (measured.steady?.rssBytes ?? Number.NaN) - measured.rssBefore;
      return {
        figures: { start: running.startMs, idle: idleBytes / 1e6, perStream: added / open / 1e3 },
        loads: [measured],
      };
    },
  };
}

const slowReader: Scenario = {
  name: 'slow-reader',
  title: 'A slow reader on an endless stream',
  figures: [plainFigure('growth', 'memory growth', 'MB', 1)],
  isFresh: true,
  fits: (subject) => subject.name !== 'direct',
  warmUp: async () => {},
  async run(stage, running, { isQuick }) {
    await warmUp(stage, running);
    const settings = { textEvents: 200, perWrite: 8, endless: 1 };
    const order = { ...streams(running, { requests: 1, atOnce: 1, settings }), readPauseMs };
    // The end of the first one starts what counts the tokens of answers that broke off, which is no part of the growth.
    await stage.measure(running, { ...order, deadlineMs: firstSlowReadMs });
    await sleep(idleMs);
    const deadlineMs = isQuick ? quickSlowReadMs : slowReadMs;
    const measured = await stage.measure(running, { ...order, deadlineMs });
    return { figures: { growth: (measured.rssMax - measured.rssBefore) / 1e6 }, loads: [measured] };
  },
};

/** How many whole answers are recorded before the size is read, and until it is read again. */
const firstRecords = 2_000;
const records = 20_000;

/** What stays of a request: its record, its charge and all indexes. The rest of the database is there before. */
const atRest: Scenario = {
  name: 'at-rest',
  title: 'Whole answers',
  figures: [plainFigure('bytes', 'disk of each for ever', 'bytes', 0)],
  isFresh: true,
  fits: ({ name, isTextgate }) => (isTextgate ? !name.startsWith('postgres') : name === 'ledger'),
  warmUp: async () => {},
  async run(stage, running, { isQuick }) {
    const { databaseFile } = running;
    if (databaseFile === null) throw new Error('there is no database file to measure');
    const send = async (requests: number): Promise<Measured> =>
      stage.measure(running, wholeAnswers(running, { requests, atOnce: 32, settings: { bodyBytes: 700 } }));
    const share = isQuick ? quickShare : 1;
    const first = await send(firstRecords);
    const bytesBefore = sizeOf(databaseFile);
    const measured = await send(records * share);
    const bytes = (sizeOf(databaseFile) - bytesBefore) / measured.result.answers;
    return { figures: { bytes }, loads: [first, measured] };
  },
};

/** The bytes of a database with what is only in its log so far. */
function sizeOf(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const row = database
      .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
      .get();
    return Number(row?.['bytes']);
  } finally {
    database.close();
  }
}

/** The scenarios for which each run starts a process. */
export const freshScenarios: readonly Scenario[] = [
  openScenario(
    'open',
    'Start, and 2,000 open streams',
    [
      plainFigure('start', 'start to ready', 'ms', 0),
      plainFigure('idle', 'memory when idle', 'MB', 0),
      perStream,
    ],
    0,
  ),
  openScenario('open-long', '2,000 open streams with prompts of 100 KB', [perStream], promptBytes),
  slowReader,
  atRest,
];
