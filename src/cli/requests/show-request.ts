import { count } from '../../shared/count.ts';
import type { PresentedRunning } from '../../http/admin/records.ts';
import type { PresentedRecord } from '../../http/present/record.ts';
import { findAdmin, readList } from '../admin-client.ts';
import { waitOf } from '../keys/keys.ts';
import { writeFields, writePosition } from '../output.ts';
import type { Field, Json } from '../output.ts';
import { readKey } from '../keys/find-key.ts';
import { findRequestId } from './find-request.ts';

type RecordedUsage = NonNullable<PresentedRecord['usage']>;

/**
 * Prints one request, which is named by its id or a part of it: its record, or, before it has one, what is known of a
 * request in progress. Throws if there is neither.
 */
export async function showRequest(request: string, { json }: Json): Promise<string> {
  const id = await findRequestId(request, 'running and recorded');
  const recorded = await findAdmin<PresentedRecord>(`/admin/records/${encodeURIComponent(id)}`);
  const running = recorded === null || !isEnded(recorded) ? await findRunning(id) : null;
  const record = recorded === null ? null : withProgress(recorded, running);
  const found = record ?? running;
  if (found === null)
    throw new Error(
      `no request ${id} is recorded or in progress: one that was refused before it was sent to an upstream, or that got the answer of another request (replayOf in its line) is in the log only`,
    );
  if (json) return JSON.stringify(found);
  const fields = [['request', id], ...(await keyFields(found)), ...journeyOf(found)] as const;
  const rest =
    record === null ? progressFields(found.upstream, running?.first_byte_ms) : recordFields(record);
  // One that gets the answer of another request calls no upstream.
  const hasJoined = running !== null && running.joined !== null;
  const known = [...fields, ...waitFields(running), ...claimFields(running)];
  return writeFields(hasJoined ? known : [...known, ...rest]);
}

/** An open record has what was known at its beginning: its upstream and its first text are those of the running request. */
function withProgress(record: PresentedRecord, running: PresentedRunning | null): PresentedRecord {
  if (running === null) return record;
  const { upstream, first_byte_ms: firstTextMs } = running;
  return { ...record, upstream, timings: { ...record.timings, first_byte_ms: firstTextMs } };
}

async function findRunning(id: string): Promise<PresentedRunning | null> {
  const running = await readList<PresentedRunning>('/admin/in-flight');
  return running.find(({ request_id: other }) => other === id) ?? null;
}

async function keyFields({ key_id: id }: Pick<PresentedRunning, 'key_id'>): Promise<readonly Field[]> {
  if (id === null) return [['key', 'not known yet']];
  const key = await readKey(id);
  if (key === null) return [['key', id]];
  const { concurrency, requests_per_minute: perMinute } = key.limits;
  return [
    ['key', `${key.name} (${id})`],
    ['limits', `${concurrency} at once, ${perMinute} per minute, wait for a slot: ${waitOf(key.limits)}`],
  ];
}

/** A request's fields that are the same in its record and while it runs. */
type Journey = Pick<PresentedRunning, 'created_at' | 'protocol' | 'mode' | 'model'> & {
  readonly outcome?: string | null;
};

function journeyOf(request: Journey): readonly Field[] {
  const { created_at: arrived, protocol, mode, model } = request;
  return [
    ['arrived', arrived],
    [
      'asked for',
      `${protocol ?? 'protocol not known yet'}, ${mode ?? 'mode not known yet'}, model ${model ?? 'not known yet'}`,
    ],
    ['state', isEnded(request) ? null : `in progress for ${ageOf(request)}`],
  ];
}

function isEnded({ outcome }: { readonly outcome?: string | null }): boolean {
  return typeof outcome === 'string';
}

function recordFields(record: PresentedRecord): readonly Field[] {
  const { price, timings, usage, outcome, tag, group, upstream, code, cause } = record;
  return [
    ['tag', tag],
    ['group', group],
    ['dispatched', `after ${ms(timings.queued_ms)}`],
    ['hold', `${record.hold} USD`],
    ...record.attempts.flatMap(attemptFields),
    ...(isEnded(record) && record.attempts.length === 0
      ? [['upstream', upstream === null ? 'none was called' : `${upstream}, which was not called`] as const]
      : []),
    ...(isEnded(record)
      ? [['first text', ms(timings.first_byte_ms)] as const]
      : progressFields(record.upstream, timings.first_byte_ms)),
    ['total', ms(timings.total_ms)],
    ['tokens', usage === null ? '-' : `${tokensOf(usage)}; source: ${record.usage_source}`],
    ['price', priceOf(price)],
    ['charge', `${record.charge} USD`],
    ['outcome', outcome === null ? 'running' : `${outcome}, status ${record.status}`],
    ['code', code],
    ['cause', cause],
  ];
}

/** What a request in progress waits for. */
function waitFields(running: PresentedRunning | null): readonly Field[] {
  if (running === null || running.waits_for === null) return [];
  const { waits_for: what, waits_at: upstreams, position, expected_wait_ms: expectedMs } = running;
  const where = upstreams === null ? `a ${what}` : upstreams.join(', ');
  return [['waits for', position === null ? where : `${where}: ${writePosition(position, expectedMs)}`]];
}

/** How many clients get the answer of a request in progress, where others may join it, or which one it has joined itself. */
function claimFields(running: PresentedRunning | null): readonly Field[] {
  if (running === null) return [];
  const { listening, joined } = running;
  const clients = listening === 0 ? 'none: it goes on for one that comes back' : `${listening} listening`;
  return [
    ['clients', listening === null ? null : clients],
    ['joined', joined && `${joined}, whose answer it gets`],
  ];
}

/** How far a request in progress has come. */
function progressFields(upstream: string | null, firstTextMs: number | null = null): readonly Field[] {
  return [
    ['upstream', upstream ?? 'none called yet'],
    ['first text', firstTextMs === null && upstream !== null ? 'none yet' : ms(firstTextMs)],
  ];
}

function attemptFields(attempt: PresentedRecord['attempts'][number], index: number): readonly Field[] {
  const { upstream, model, result, duration_ms: durationMs, usage } = attempt;
  const { started_ms: started, upstream_error: said } = attempt;
  const words = said && [said.status, said.code, said.message];
  const when = `${started === null ? '' : `from ${ms(started)} `}for ${ms(durationMs)}`;
  return [
    [`attempt ${index + 1}`, `${upstream}, model ${model}: ${result}, ${when}`],
    ['', attempt.cause || null],
    ['', words && `the upstream's words: ${words.filter((part) => part !== null).join(', ')}`],
    ['', usage && `counted by the upstream: ${tokensOf(usage)}`],
  ];
}

function tokensOf(usage: RecordedUsage): string {
  return `${usage.input_tokens} in (${usage.cached_input_tokens} cached, ${usage.cache_write_tokens} cache write), ${usage.output_tokens} out (${count(usage.reasoning_tokens, 'reasoning token')})`;
}

function priceOf(price: PresentedRecord['price']): string {
  if (Object.values(price).every((amount) => Number(amount) === 0)) return 'free';
  return `${price.input} USD in, ${price.cached_input} cached, ${price.cache_write} cache write, ${price.output} out per million; ${price.request} per request`;
}

function ms(milliseconds: number | null): string {
  return milliseconds === null ? '-' : `${milliseconds} ms`;
}

/** How long a request has been running, in seconds. */
function ageOf({ created_at: createdAt }: Pick<PresentedRunning, 'created_at'>): string {
  return `${Math.max(0, (Date.now() - Date.parse(createdAt)) / 1_000).toFixed(1)} s`;
}
