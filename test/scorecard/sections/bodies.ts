import { readDatabaseFiles } from '../../support/canaries.ts';
import { databaseIn } from '../../chaos/served-process.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { echoed, startEcho } from '../bodies/echo-upstream.ts';
import { jsonCases } from '../bodies/json-cases.ts';
import type { JsonCase } from '../bodies/json-cases.ts';
import { jsonPlaces } from '../bodies/json-places.ts';
import type { JsonPlace } from '../bodies/json-places.ts';
import { canary, naughtyPlaces } from '../bodies/naughty-places.ts';
import type { NaughtyPlace } from '../bodies/naughty-places.ts';
import { naughtyStrings } from '../bodies/naughty-strings.ts';
import { metricsOf } from '../gateway-state.ts';
import { errorCode, exchange } from '../raw-exchange.ts';
import type { RawAnswer } from '../raw-exchange.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';
import type { Subject } from '../subject.ts';

/** Requests at a time. A scale below 1 tries a sample. */
const atATime = 4;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const section: Section = {
  name: 'bodies',
  title: 'Corner cases of JSON, and naughty strings',
  about:
    'Numbers, strings, encodings, depths, sizes and broken structures by the grammar of JSON, in each of six places of a ' +
    'request; and strings that break careless programs, in each of ten places. No answer may be a 5xx; what is no JSON is ' +
    'a 400; text reaches the upstream as it was sent; and no text is found in the log, the metrics or the database.',
  async run({ seed, scale }) {
    const upstream = await startEcho();
    const subject = await startSubject({ name: 'bodies', upstreamUrl: upstream.url });
    const faults: string[] = [];
    const statuses = new Map<number, number>();
    let [asItIs, refused] = [0, 0];

    const before = await referenceBody(subject, upstream.lastBody);
    const random = seededNumbers(seed);
    const isTried = (): boolean => random() < scale;
    const broken = jsonPlaces
      .flatMap((place) => jsonCases.map((tried) => ({ place, tried })))
      .filter(isTried);
    await forEachOf(broken, atATime, async ({ place, tried }) => {
      const { answer, wanted } = await sendCase(subject, place, tried);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (wanted === null) refused++;
      const fault = faultOf(answer, wanted);
      if (fault !== null) faults.push(`${place.name}, ${tried.kind} ${tried.name}: ${fault}`);
      else if (typeof wanted === 'object' && wanted !== null) asItIs++;
    });
    const naughty = naughtyPlaces
      .flatMap((place) => naughtyStrings.map((tried) => ({ place, ...tried })))
      .filter(isTried);
    await forEachOf(naughty, atATime, async ({ place, kind, text }) => {
      const { answer, content } = await sendString(subject, place, text);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const fault = faultOf(answer, content === null ? 'any' : { text: content });
      if (fault !== null)
        faults.push(`${place.name}, ${kind} ${JSON.stringify(text).slice(0, 60)}: ${fault}`);
      else if (content !== null) asItIs++;
    });
    if ((await referenceBody(subject, upstream.lastBody)) !== before)
      faults.push('the same request is another one for the upstream afterwards');

    const places = {
      metrics: await metricsOf(subject.served),
      log: subject.log(),
      database: readDatabaseFiles(databaseIn(subject.folder)),
    };
    for (const [place, found] of Object.entries(places))
      if (found.includes(canary.trim())) faults.push(`a text of a request is in the ${place}`);
    faults.push(...(await subject.finish()));
    await upstream.close();
    return {
      cases: broken.length + naughty.length,
      facts: [
        ['corner cases of JSON', `${jsonCases.length} in ${jsonPlaces.length} places`],
        ['naughty strings', `${naughtyStrings.length} in ${naughtyPlaces.length} places`],
        ['bodies that are no JSON, each a 400', refused],
        ['texts that reached the upstream as they were', asItIs],
        ['answers by status', shownStatuses(statuses)],
        ['5xx', [...statuses].reduce((sum, [status, count]) => sum + (status >= 500 ? count : 0), 0)],
      ],
      faults,
    };
  },
};

/**
 * What must come of a request: `null`: a 400, as it is no JSON; `read`: it is not refused as broken; a text: it has reached
 * the upstream as it was; `any`: no 5xx.
 */
type Wanted = null | 'any' | 'read' | { readonly text: string };

async function sendCase(
  { served, key }: Subject,
  place: JsonPlace,
  tried: JsonCase,
): Promise<{ readonly answer: RawAnswer; readonly wanted: Wanted }> {
  const body = Buffer.concat([Buffer.from(place.before), tried.bytes, Buffer.from(place.after)]);
  const head = [
    `POST ${place.path} HTTP/1.1`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
  ];
  const answer = await exchange(served.url, head, body);
  if (!isJson(body)) return { answer, wanted: tried.kind === 'i' ? 'any' : null };
  if (tried.kind !== 'y') return { answer, wanted: 'any' };
  const value = JSON.parse(tried.bytes.toString()) as unknown;
  const isText = place.isText && typeof value === 'string' && (value !== '' || place.name !== 'input');
  return { answer, wanted: isText ? { text: value } : 'read' };
}

async function sendString(subject: Subject, place: NaughtyPlace, text: string) {
  const { url, head, body, content } = place.ask(text, subject);
  return { answer: await exchange(url, head, Buffer.from(body)), content };
}

function faultOf({ status, body }: RawAnswer, wanted: Wanted): string | null {
  if (status === 0 || status >= 500) return `status ${status}`;
  if (wanted === null) return status === 400 ? null : `status ${status} for what is no JSON`;
  if (wanted === 'read') return errorCode(body) === 'invalid_json' ? 'JSON is refused as broken' : null;
  if (wanted === 'any') return null;
  if (status !== 200) return `status ${status} (${errorCode(body)}) for a text`;
  // An answer has U+FFFD in place of half a surrogate pair: UTF-8 has no bytes for it.
  return echoed(body) === wanted.text.toWellFormed() ? null : 'another text has reached the upstream';
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(strict.decode(bytes));
    return true;
  } catch {
    return false;
  }
}

/** What the upstream gets for one request that is always the same. */
async function referenceBody({ served, key }: Subject, lastBody: () => string): Promise<string> {
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
  ];
  await exchange(
    served.url,
    head,
    Buffer.from('{"model":"small","messages":[{"role":"user","content":"x"}]}'),
  );
  return lastBody();
}

function shownStatuses(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .toSorted(([a], [b]) => a - b)
    .map(([status, count]) => `${status}: ${count.toLocaleString('en-US')}`)
    .join(', ');
}
