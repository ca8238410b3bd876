import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dialects } from '../../src/protocol/upstream/dialects.ts';
import { readAnswer, readStream } from '../support/client-answer.ts';
import { cut } from '../support/scripted-upstream.ts';
import { propertyRun } from '../support/property-run.ts';
import { rewriteBytes } from '../support/rewrite-bytes.ts';
import { openStage } from '../support/stage.ts';
import { hasRecordings } from '../support/shared-recordings.ts';
import { readIndependently } from '../support/independent-reading.ts';
import type { Reading } from '../support/independent-reading.ts';
import { loadRecordings } from './recording.ts';
import type { Recording } from './recording.ts';

/** Answers cut at a time; streams cut at every byte; and the size below which every rare stream is, too. */
const atATime = 24;
/** How many of a stream's first events, and of its last, are each cut off over sockets, and one of how many between them. */
const [firstEvents, lastEvents, between] = [3, 5, 8];
const cutAtEveryByte = 50;
const maxRareBytes = 8_192;

const clientProtocols = ['chat', 'responses'] as const;
const limits = { concurrency: 2 * atATime };
const stages = {
  chat: await openStage({ limits }),
  responses: await openStage({ dialect: 'responses', limits }),
  anthropic: await openStage({ dialect: 'anthropic', limits }),
  gemini: await openStage({ dialect: 'gemini', limits }),
};
const streams = hasRecordings ? loadRecordings(({ isStream }) => isStream) : [];
/** Of the protocols with few recordings, streams of every kind are cut. */
const texts = streams.filter(({ kind, protocol }) => kind === 'text' || isRare(protocol));
/** Every text stream up to some of its events. Each is read here once, and then sent to both kinds of clients. */
const jobs = texts.flatMap((recording) =>
  someEventEnds(recording).flatMap((length) => {
    const bytes = recording.bytes.subarray(0, length);
    const isWhole = wasSaidToBeOver(recording, bytes);
    return (['fin', 'rst'] as const).map((how): Job => ({ recording, bytes, isWhole, how }));
  }),
);
/** The endings of a recording at places where it is cut, read once for both kinds of clients. */
const endingsByFile = new Map<string, ReadonlyMap<number, Reading['ending']>>();

describe.skipIf(!hasRecordings)('recorded streams of text (kept beside the checkout)', () => {
  test.each(clientProtocols)(
    'that are cut off after an event, by FIN and by RST, are never complete for %s clients',
    async (clientProtocol) => {
      sendAndCut();
      const lies: unknown[] = [];
      await inParallel(jobs, async ({ recording, bytes, isWhole, how }, index) => {
        const { gateway } = stages[recording.protocol];
        const answer = await readAnswer(gateway, clientProtocol, true, String(index));
        const seemsWhole = answer.ending !== 'failure';
        const isLost = how === 'rst' && isWhole && !seemsWhole;
        if (seemsWhole !== isWhole && !isLost)
          lies.push({ file: recording.file, length: bytes.length, how, answer });
      });
      expect(lies).toEqual([]);
      process.stdout.write(
        `${clientProtocol}: ${jobs.length} cuts of ${texts.length} streams, false completions: 0\n`,
      );
    },
    300_000,
  );

  test.each(clientProtocols)(
    'that end after any event, and at any byte of small ones, are complete for %s clients only with an explicit end',
    (clientProtocol) => {
      const bySize = texts.toSorted((a, b) => a.bytes.length - b.bytes.length);
      const smallest = new Set([
        ...bySize.filter(({ protocol }) => !isRare(protocol)).slice(0, cutAtEveryByte),
        ...bySize.filter(({ protocol, bytes }) => isRare(protocol) && bytes.length <= maxRareBytes),
      ]);
      const lies: unknown[] = [];
      let cuts = 0;
      for (const recording of texts) {
        const { protocol, bytes, file } = recording;
        const places = smallest.has(recording) ? bytes.keys() : eventEnds(recording);
        for (const [length, truth] of endingsOf(recording, places)) {
          const part = bytes.subarray(0, length);
          const answer = readStream(clientProtocol, rewriteBytes(dialects[protocol], clientProtocol, [part]));
          const ending = truth === 'tool' ? 'failure' : truth;
          if (answer.ending !== ending) lies.push({ file, length, truth, answer });
          cuts++;
        }
      }
      expect(lies).toEqual([]);
      process.stdout.write(
        `${clientProtocol}: ${cuts} cuts of ${texts.length} streams, of ${smallest.size} at every byte, false completions: 0\n`,
      );
    },
    120_000,
  );

  test('yield the same bytes however they are split', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...streams),
        fc.constantFrom(...clientProtocols),
        fc.array(fc.nat(), { maxLength: 40 }),
        ({ protocol, bytes }, clientProtocol, places) => {
          const cuts = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
            (a, b) => a - b,
          );
          const pieces = cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
          const whole = rewriteBytes(dialects[protocol], clientProtocol, [bytes]);
          expect(rewriteBytes(dialects[protocol], clientProtocol, pieces)).toBe(whole);
        },
      ),
      propertyRun(1_000),
    );
  });
});

function isRare(protocol: Recording['protocol']): boolean {
  return protocol === 'anthropic' || protocol === 'gemini';
}

/** Where the events of a recording end, each with the blank lines behind it. */
function eventEnds({ bytes }: Recording): number[] {
  const events = bytes.toString('latin1').match(/[^]*?(?:\r\n\r\n|\n\n|\r\r|$)(?:\r|\n)*/g) ?? [];
  let length = 0;
  return events.filter((event) => event !== '').map((event) => (length += event.length));
}

/** The ends of a recording's first and last events, and of some between them: what is read there differs least. */
function someEventEnds(recording: Recording): readonly number[] {
  const ends = eventEnds(recording);
  return ends.filter(
    (_, index) => index < firstEvents || index >= ends.length - lastEvents || index % between === 0,
  );
}

function endingsOf(
  { file, protocol, bytes }: Recording,
  places: Iterable<number>,
): ReadonlyMap<number, Reading['ending']> {
  const known = endingsByFile.get(file);
  if (known !== undefined) return known;
  const endings = new Map(
    Array.from(places, (length) => {
      const { ending } = readIndependently(protocol, bytes.toString('utf8', 0, length), true);
      return [length, ending] as const;
    }),
  );
  endingsByFile.set(file, endings);
  return endings;
}

/**
 * Whether an answer has an explicit end: `[DONE]`, or the last event of a response or a message. Only such an end
 * counts on a connection that breaks. Gemini has none. A reset may drop bytes that were sent before it; an answer lost
 * that way is a failure, not a false success.
 */
function wasSaidToBeOver({ protocol }: Recording, bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  const { ending } = readIndependently(protocol, text, true);
  const isOver = ending !== 'failure' && ending !== 'tool';
  const saysSo = { chat: false, responses: true, anthropic: text.includes('message_stop'), gemini: false };
  return isOver && (saysSo[protocol] || /^data: ?\[DONE\]/m.test(text));
}

interface Job {
  readonly recording: Recording;
  /** The bytes that are sent before the connection is cut, and whether they say that the answer is over. */
  readonly bytes: Buffer;
  readonly isWhole: boolean;
  readonly how: 'fin' | 'rst';
}

/** Has every job's bytes sent and the connection cut behind them; a job is found again by its number. */
function sendAndCut(): void {
  for (const { upstream } of Object.values(stages)) {
    upstream.play(async (response, { body }) => {
      const job = jobs[Number(/"(?:content|text)":"(\d+)"/.exec(body)?.[1])];
      if (job === undefined) throw new Error('a request without a job');
      const { recording, bytes, how } = job;
      response.writeHead(200, { 'content-type': recording.contentType });
      response.flushHeaders();
      await new Promise<void>((resolve) => response.write(bytes, () => resolve()));
      cut(response, how);
    });
  }
}

/** Runs jobs in order, some of them at a time. */
async function inParallel<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) await work(item, index);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}
