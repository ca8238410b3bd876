import { costOf, noTokens, priceFor } from '../../../src/domain/money/pricing.ts';
import { mostWithin } from '../../simulation/upstream-limiter/upstream.ts';
import { noEndInTime, readSent } from './clients.ts';
import type { Sent } from './clients.ts';
import type { Broken } from './gateways.ts';
import { heldLimits, passedNanos, price } from './settings.ts';
import type { ServedCall } from './upstreams.ts';

const minuteMs = 60_000;
const maxAttempts = 4;

/** How late an upstream may see on a busy machine that a connection is closed, in milliseconds. */
const seenLateMs = 400;

/** How much later one start may reach an upstream than another one, in milliseconds, on a busy machine. */
const dispatchJitterMs = 1_500;

/** What an answer of the gateway may add to the tokens of a prompt, by its size. */
const framingTokens = 32;

/** A request's row in the database. */
export interface RecordRow {
  readonly requestId: string;
  readonly keyId: string;
  readonly outcome: string;
  readonly charge: number;
}

/** An account, beside what its ledger says; amounts in nano-USD. */
export interface AccountRow {
  readonly keyId: string;
  readonly balance: number | null;
  readonly held: number;
  readonly spent: number;
  readonly ledger: number;
  readonly credits: number;
}

/** What clients, upstreams and the database know of a run, once nothing runs any more. */
export interface Evidence {
  readonly sent: readonly Sent[];
  readonly calls: readonly ServedCall[];
  readonly broken: readonly Broken[];
  readonly records: readonly RecordRow[];
  readonly accounts: readonly AccountRow[];
  /** What was paid into each account, by the id of its key, in nano-USD. */
  readonly credited: ReadonlyMap<string, number>;
  /** Whether limits of a minute hold over restarts: those of SQLite are in memory. */
  readonly hasSharedLimits: boolean;
}

/** Everything that is wrong with what clients got, what they paid and what upstreams were sent. */
export function checkEvidence(evidence: Evidence): string[] {
  const byNumber = Map.groupBy(
    evidence.calls.filter(({ kind }) => kind !== 'shadow'),
    ({ number }) => number,
  );
  const rows = new Map(evidence.records.map((row) => [row.requestId, row]));
  return [
    ...evidence.sent.flatMap((sent) =>
      checkSent(sent, byNumber.get(sent.number) ?? [], evidence, rows.get(sent.requestId) ?? null),
    ),
    ...checkAccounts(evidence),
    ...checkLimits(evidence),
  ];
}

function cost(inputTokens: number, outputTokens: number): number {
  return costOf({ ...noTokens, inputTokens, outputTokens }, priceFor(price, inputTokens));
}

/** What is wrong with one request: its end, its text and its charge. */
function checkSent(
  sent: Sent,
  calls: readonly ServedCall[],
  { broken }: Evidence,
  row: RecordRow | null,
): string[] {
  const faults: string[] = [];
  const story = calls.map((call) => `${call.upstream} ${call.behaviour}`).join('; ');
  const expect = (isRight: boolean, what: string): void =>
    void (
      isRight ||
      faults.push(
        `${sent.protocol} ${sent.number} ${sent.requestId} at gateway ${sent.node}: ${what} (${story})`,
      )
    );
  expect(sent.endedMs !== null, 'it never ended');
  expect(calls.length <= maxAttempts, `${calls.length} attempts`);
  const times = `${Math.round(sent.startedMs)}-${Math.round(sent.endedMs ?? 0)} ms`;
  expect(isEndExplained(sent, calls, broken), `${sent.status}, ${sent.fault ?? 'no end'}, ${times}`);
  if (sent.protocol === 'passed') {
    if (row !== null) expect(row.charge === 0 || row.charge === passedNanos, `charged ${row.charge}`);
    return faults;
  }
  const answer = readSent(sent);
  if (sent.isEnded && !sent.hasLeft) expect(answer !== null, `unreadable: ${sent.body.slice(0, 200)}`);
  const isWhole = answer?.ending === 'stop' && (sent.isStream || sent.isEnded);
  if (sent.isEnded && sent.status === 200 && answer !== null && !isWhole)
    expect(sent.isStream && answer.ending === 'failure', `200 and ${answer.ending}`);
  const mostOutput = Math.max(0, ...calls.map(({ usual, text }) => Math.max(usual.output, text.length)));
  const most = calls.length === 0 ? 0 : cost(sent.promptChars + framingTokens, mostOutput);
  if (row !== null) expect(row.charge <= most, `charged ${row.charge}, at most ${most}`);
  if (!isWhole) return faults;
  const winner = calls.find(({ isWhole: isOver, text }) => isOver && text === answer.text) ?? null;
  expect(winner !== null, `a complete answer that no upstream gave: ${answer.text}`);
  expect(row?.outcome === 'completed', `a complete answer is recorded as ${row?.outcome ?? 'nothing'}`);
  const usage = winner?.usage;
  if (row !== null && usage !== null && usage !== undefined)
    expect(
      row.charge === cost(usage.input, usage.output),
      `charged ${row.charge}, not ${cost(usage.input, usage.output)}`,
    );
  return faults;
}

/** Whether a client has one whole answer, or left, or its gateway was broken, or its stream says that it failed. */
function isEndExplained(sent: Sent, calls: readonly ServedCall[], broken: readonly Broken[]): boolean {
  const { hasLeft, isEnded, fault, startedMs, node, body } = sent;
  if (hasLeft || (isEnded && fault === null)) return true;
  const endedMs = sent.endedMs ?? Number.POSITIVE_INFINITY;
  if (broken.some((time) => time.node === node && time.fromMs <= endedMs && startedMs <= time.toMs))
    return true;
  if (fault === noEndInTime) return false;
  // What broke the answer before it is looked for at that one; this one may have run meanwhile.
  if (sent.status === 0 && sent.isBehindBroken) return true;
  // The gateway closed the connection while the request was on its way: it reached no upstream.
  if (sent.status === 0) return sent.mayBeUnread && calls.length === 0;
  if (sent.protocol === 'passed') return calls.some(({ isCut, endedMs: at }) => isCut || at === null);
  return sent.isStream && body.includes('"error"');
}

/** Balances to the nano, and nothing held. */
function checkAccounts({ accounts, records, credited }: Evidence): string[] {
  const charged = new Map<string, number>();
  for (const { keyId, charge } of records) charged.set(keyId, (charged.get(keyId) ?? 0) + charge);
  return accounts.flatMap(({ keyId, balance, held, spent, ledger, credits }) => {
    const found: string[] = [];
    const expected = charged.get(keyId) ?? 0;
    // A key whose creation was not answered belongs to no client, and has what its ledger says.
    const paid = credited.get(keyId) ?? credits;
    if (held !== 0) found.push(`${keyId} has ${held} held`);
    if (spent !== expected) found.push(`${keyId} spent ${spent}, its records say ${expected}`);
    if (credits !== paid) found.push(`${keyId} was credited ${credits}, and paid ${paid}`);
    if (balance !== null && balance !== paid - expected)
      found.push(`${keyId} has a balance of ${balance}, not ${paid - expected}`);
    if (ledger !== credits - expected) found.push(`${keyId} has a ledger of ${ledger}`);
    return found;
  });
}

/** The limits of upstreams by their own count. */
function checkLimits({ calls, hasSharedLimits }: Evidence): string[] {
  return [...heldLimits].flatMap(([upstream, { maxInFlight, requestsPerMinute }]) => {
    const own = calls.filter((call) => call.upstream === upstream);
    const found: string[] = [];
    const most = mostAtOnce(own);
    if (most > maxInFlight)
      found.push(`${upstream} had ${most} requests at once, with a limit of ${maxInFlight}`);
    const starts = mostWithin(
      own.map(({ arrivedMs }) => ({ atMs: arrivedMs, amount: 1 })),
      minuteMs - dispatchJitterMs,
    );
    if (requestsPerMinute !== null && hasSharedLimits && starts > requestsPerMinute)
      found.push(`${upstream} had ${starts} starts in a minute, with a limit of ${requestsPerMinute}`);
    return found;
  });
}

/** The most calls that an upstream had at once: one that was cut off counts up to when that could be seen. */
function mostAtOnce(calls: readonly ServedCall[]): number {
  const changes = calls
    .flatMap(({ arrivedMs, endedMs, isCut }) => {
      const overMs = endedMs ?? Number.POSITIVE_INFINITY;
      return [
        { atMs: arrivedMs, by: 1 },
        { atMs: isCut ? Math.max(arrivedMs, overMs - seenLateMs) : overMs, by: -1 },
      ];
    })
    .toSorted((a, b) => a.atMs - b.atMs || a.by - b.by);
  let [now, most] = [0, 0];
  for (const { by } of changes) most = Math.max(most, (now += by));
  return most;
}

/** Messages of warnings and errors that such a run has. */
const expectedMessages: readonly RegExp[] = [
  /^upstream circuit (opened|closed)$/,
  /^upstream rejected its API key$/,
  /^implausible usage from an upstream: counted instead$/,
  /^worker ended: another one replaces it$/,
  /^the lease of a process was over and is ended$/,
  /^closed requests left open by (a previous|an ended) process$/,
  /^settlements of a previous process/,
  // Of a process that ends while the connections are cut: the books show whether the next one has made them.
  /^settlements left in the spool for the next start$/,
  /^config reload (failed: the previous config stays in force|succeeds again)$/,
  /^database (does not accept writes|accepts writes again)$/,
  /^the connection to the database (is back|was lost)/,
];

/** Reasons of warnings and errors while the connections to the database are cut: whatever needed one then, says so. */
const isCut =
  /terminating connection due to administrator command|Connection terminated unexpectedly|(?:read|write) (?:EPIPE|ECONNRESET)|it is being opened/;

/** What is wrong with a log: texts that must not be there, and warnings and errors that nothing here explains. */
export function checkLog(node: number, log: string, secrets: readonly string[]): string[] {
  const found = new Map<string, string>();
  for (const line of log.split('\n')) {
    if (line === '') continue;
    const leaked = secrets.find((secret) => line.includes(secret));
    if (leaked !== undefined)
      found.set('a secret', `gateway ${node} logs a prompt, an answer or a key: ${line.slice(0, 300)}`);
    const message = unexpectedMessage(line);
    if (message !== null) found.set(message, `gateway ${node} logs: ${line.slice(0, 700)}`);
  }
  return [...found.values()];
}

/** The message of a line that nothing here explains. */
function unexpectedMessage(line: string): string | null {
  let read: { readonly level?: unknown; readonly msg?: unknown; readonly reason?: unknown };
  try {
    read = JSON.parse(line) as typeof read;
  } catch {
    return 'no JSON';
  }
  const isBad = /^(warn|error|fatal)$/.test(String(read.level)) || Number(read.level) >= 40;
  // Without how often it was repeated.
  const message = String(read.msg).replace(/ \(and \d+ times since the last such line\)$/, '');
  if (!isBad || expectedMessages.some((expected) => expected.test(message))) return null;
  return isCut.test(String(read.reason)) ? null : message;
}

/** What clients were told that they must not be: keys, and where upstreams are. */
export function checkBodies(sent: readonly Sent[], secrets: readonly string[]): string[] {
  return sent.flatMap(({ number, body }) =>
    secrets.some((secret) => body.includes(secret)) ? [`${number}: told ${body.slice(0, 300)}`] : [],
  );
}

/** The gauges of `/metrics` that are not 0 when nothing runs. */
function checkGauges(node: number, metrics: string): string[] {
  const idle =
    /^(textgate_(?:requests_in_flight|streams_open|requests_waiting|upstream_in_flight|upstream_waiting|holds_outstanding|ledger_lag_seconds|ledger_imbalance_nanos))(\{[^}]*\})? (\S+)$/;
  return metrics.split('\n').flatMap((line) => {
    const value = idle.exec(line)?.[3];
    return value === undefined || value === 'NaN' || Number(value) === 0
      ? []
      : [`gateway ${node} has ${line}`];
  });
}

/** What a gateway says of itself: its views, parsed, and the text of `/metrics`. */
export interface Views {
  readonly status: {
    readonly in_flight: { readonly running: number; readonly waiting: number };
    readonly upstreams: Readonly<Record<string, { readonly running: number; readonly waiting: number }>>;
  };
  readonly upstreams: { readonly data: readonly object[] };
  readonly shadows: object;
  readonly groups: object;
  readonly ledger: { readonly faults?: readonly string[] };
  readonly metrics: string;
}

/** What runs, waits or is held on a gateway without clients, and what the audit of its ledger found. */
export function checkIdle(
  node: number,
  { status, upstreams, shadows, groups, ledger, metrics }: Views,
): string[] {
  const faults: string[] = [];
  const expect = (isRight: boolean, what: unknown): void =>
    void (isRight || faults.push(`gateway ${node} at rest: ${JSON.stringify(what)}`));
  const { in_flight: inFlight } = status;
  expect(inFlight.running + inFlight.waiting === 0, inFlight);
  for (const [name, { running, waiting }] of Object.entries(status.upstreams))
    expect(running + waiting === 0, { [name]: { running, waiting } });
  for (const upstream of upstreams.data)
    expect(!/"(?:in_flight|waiting|running)":[1-9]/.test(JSON.stringify(upstream)), upstream);
  expect(!/"running":[1-9]|"held":"(?!0\.00")/.test(JSON.stringify(shadows)), shadows);
  expect(!/"in_flight":[1-9]|"held":"(?!0\.00")/.test(JSON.stringify(groups)), groups);
  expect(ledger.faults?.length === 0, { ledger });
  return [...faults, ...checkGauges(node, metrics)];
}
