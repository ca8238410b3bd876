import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { formatUsd } from '../../src/shared/money.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { expectEqual, expectMatch } from '../support/assertions.ts';
import { propertyRun } from '../support/property-run.ts';
import { referencePeriod } from '../support/reference-calendar.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { NaiveBooks } from './naive-books.ts';
import type { BudgetInput, ShownBudgets } from './naive-books.ts';

/** A token costs 1,000 nano-USD; each question has eleven by the count of the upstream. */
const price = { input: '1', cacheWrite: '1', output: '1' };
const tokenNanos = 1_000;
const questionTokens = 11;
const maxAnswerTokens = 20;

const names = ['red', 'green', 'blue'] as const;
const spares = ['cyan', 'pink', 'grey'] as const;
const keyCount = 3;

const budget = fc.record({
  amount: fc.integer({ min: 5_000, max: 200_000 }).map(formatUsd),
  per: fc.constantFrom(...budgetPeriods),
  timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/Havana', 'Australia/Lord_Howe'),
});

const which = fc.nat(keyCount - 1);
const tokens = fc.integer({ min: 1, max: maxAnswerTokens });
const hoursMs = 3_600_000;

/** How often the holder of a key may read what it has spent, in any 60 seconds. */
const readsPerMinute = 60;

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('ask' as const), which, tokens }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin' as const), which, tokens }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer' as const), which: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('move to the end' as const),
      of: budget,
      offsetMs: fc.oneof(
        fc.integer({ min: -2, max: 2 }),
        fc.integer({ min: -2 * hoursMs, max: 30 * hoursMs }),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      byMs: fc.integer({ min: -hoursMs, max: 9 * hoursMs }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('change key' as const),
      which,
      to: fc.option(budget, { freq: 8 }),
      fields: fc.subarray(['amount', 'per', 'timeZone'] as const, { minLength: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('move key' as const),
      which,
      to: fc.option(fc.constantFrom(...names), { freq: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('change group' as const),
      name: fc.constantFrom(...names),
      to: fc.option(budget, { freq: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('remove group' as const), name: fc.constantFrom(...names) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('rename group' as const),
      name: fc.constantFrom(...names, ...spares),
      to: fc.constantFrom(...names, ...spares),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const) }) },
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind> = Extract<Step, { readonly kind: Kind }>;

const history = fc.record({
  startMs: fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2030, 0, 1) }),
  keys: fc.array(fc.option(budget), { minLength: keyCount, maxLength: keyCount }),
  groups: fc.tuple(fc.option(budget), fc.option(budget)),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Where the gateways of a history have their database. */
export interface HistoryDatabase {
  readonly storage: NonNullable<ConfigInput['storage']>;
  /** The database as a process finds it that starts after this one was killed; what the old one does is for itself, or not. */
  kill(): Promise<{ readonly database: HistoryDatabase; readonly isShared: boolean }>;
  /** An engine on it, which is closed with it. */
  audit(): Promise<Engine>;
  close(): Promise<void>;
}

/** How often each key's holder has read what the key has spent, in the last minute of the system's clock. */
class HolderReads {
  readonly #times = new Map<string, readonly number[]>();

  /** Counts a read, if the holder may make one. */
  takes(id: string): boolean {
    const nowMs = systemClock.monotonicMs();
    const recent = (this.#times.get(id) ?? []).filter((atMs) => nowMs - atMs <= 60_000);
    const mayRead = recent.length < readsPerMinute;
    this.#times.set(id, mayRead ? [...recent, nowMs] : recent);
    return mayRead;
  }
}

/** Gateways whose budgets, groups and clocks change and which end in every way, beside a sum over all requests. */
export function describeChangingBudgets(
  name: string,
  open: () => Promise<HistoryDatabase>,
  runs: number,
): void {
  let upstream: ScriptedUpstream;
  /** How many steps were played; printed, as a history may be short. */
  let played = 0;
  const timeoutMs = Math.max(120_000, propertyRun(runs).numRuns * 60_000);
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(async () => {
    await upstream.close();
    process.stdout.write(`${name}: ${played} steps\n`);
  });

  test(
    `${name}: what is spent, held and left is what the requests add up to, whatever becomes of budgets, groups, clocks and processes`,
    { timeout: timeoutMs },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async (made) => {
          const gateways = new PlayedHistory(upstream, await open(), made);
          try {
            expect(await gateways.play()).toEqual([]);
            played += made.steps.length;
          } finally {
            await gateways.close();
          }
        }),
        // A long history takes minutes to shrink, and a timeout would not say what it was.
        { ...propertyRun(runs), interruptAfterTimeLimit: timeoutMs / 2, markInterruptAsFailure: true },
      );
    },
  );
}

/** A question in progress: `answer` has the upstream answer it, `ended` resolves when its client has the answer. */
interface Running {
  readonly number: number;
  readonly tokens: number;
  readonly answer: () => void;
  readonly ended: Promise<Response>;
}

class PlayedHistory {
  readonly #made: History;
  readonly #books: NaiveBooks;
  readonly #keys: { readonly id: string; readonly secret: string }[] = [];
  readonly #told = new Map<number, PromiseWithResolvers<void>>();
  readonly #seen = new Map<number, PromiseWithResolvers<void>>();
  readonly #upstream: ScriptedUpstream;
  #database: HistoryDatabase;
  #gateway: Gateway;
  #running: Running[] = [];
  #lastNumber = 0;
  readonly #reads = new HolderReads();

  constructor(upstream: ScriptedUpstream, database: HistoryDatabase, made: History) {
    this.#upstream = upstream;
    this.#database = database;
    this.#made = made;
    this.#books = new NaiveBooks(made.startMs);
    for (const [at, to] of made.groups.entries()) this.#books.groups.set(names[at] ?? '', to);
    upstream.play(async (response, { body }) => {
      const [, number = '', count = ''] = /ask (\d+) for (\d+)/.exec(body) ?? [];
      this.#seen.get(Number(number))?.resolve();
      await this.#told.get(Number(number))?.promise;
      const usage = { prompt_tokens: questionTokens, completion_tokens: Number(count) };
      const choices = [{ index: 0, message: { role: 'assistant', content: 'a b' }, finish_reason: 'stop' }];
      sendJson(response, 200, JSON.stringify({ id: 'x', object: 'chat.completion', choices, usage }));
    });
    this.#gateway = this.#make();
  }

  /** Plays the history; resolves with what an audit finds wrong at its end. */
  async play(): Promise<readonly string[]> {
    for (const [at, to] of this.#made.keys.entries()) {
      const budgetOfKey = to === null ? {} : { budget: to };
      const { id, key: secret } = await this.#gateway.keys.create({ name: `key ${at}`, ...budgetOfKey });
      this.#keys.push({ id, secret });
      this.#books.addKey(id, to);
    }
    for (const made of this.#made.steps) {
      await this.#take(made);
      await this.#check();
    }
    await this.#answerAll();
    await this.#gateway.close();
    const engine = await this.#database.audit();
    const [rows = []] = await engine.read([
      { sql: 'SELECT budget, budget_period, group_budget, group_period, charge FROM records', values: [] },
    ]);
    this.#books.checkRecords(rows);
    return (await verifyLedger(createLedgerAudit(engine))).faults;
  }

  async close(): Promise<void> {
    for (const { resolve } of this.#told.values()) resolve();
    await this.#gateway.close();
    await this.#database.close();
  }

  #configOf(): ConfigInput {
    const groups = [...this.#books.groups].map(([name, to]) => [name, to === null ? {} : { budget: to }]);
    return {
      server: { port: 0 },
      admin: { port: 0, token: 'an-admin-token-for-tests' },
      storage: this.#database.storage,
      limits: { concurrency: 100, requestsPerMinute: 10_000_000 },
      groups: Object.fromEntries(groups),
      upstreams: { local: { url: this.#upstream.url } },
      models: { small: { routes: [{ upstream: 'local', model: 'm' }], price } },
    };
  }

  #make(): Gateway {
    const clock = { ...systemClock, now: () => this.#books.nowMs };
    return createGateway(this.#configOf(), { logLevel: 'silent', clock });
  }

  /** Puts the next gateway in the place of this one, once it has ended what an earlier one left open. */
  async #startNext(): Promise<void> {
    this.#gateway = this.#make();
    await this.#gateway.listen();
  }

  async #take(made: Step): Promise<void> {
    const books = this.#books;
    if (made.kind === 'ask') await this.#ask(made);
    else if (made.kind === 'begin') await this.#begin(made);
    else if (made.kind === 'answer') await this.#answer(made.which);
    else if (made.kind === 'move') books.nowMs += made.byMs;
    else if (made.kind === 'move to the end') {
      const { endMs } = referencePeriod(books.nowMs, made.of.per, made.of.timeZone);
      books.nowMs = Math.max(books.nowMs, endMs + made.offsetMs);
    } else if (made.kind === 'change key') await this.#changeKey(made);
    else if (made.kind === 'move key') await this.#moveKey(made.which, made.to);
    else if (made.kind === 'change group') this.#reload(() => books.groups.set(made.name, made.to));
    else if (made.kind === 'remove group') this.#reload(() => books.groups.delete(made.name));
    else if (made.kind === 'rename group') await this.#renameGroup(made);
    else if (made.kind === 'restart') await this.#restart();
    else await this.#kill();
  }

  #reload(change: () => void): void {
    change();
    expectEqual(this.#gateway.reload(this.#configOf()), []);
  }

  async #changeKey({ which: at, to, fields }: StepOf<'change key'>): Promise<void> {
    const { id } = this.#keyAt(at);
    const before = this.#books.keyOf(id).budget;
    const changes =
      to === null || before === null ? to : Object.fromEntries(fields.map((field) => [field, to[field]]));
    await this.#gateway.keys.update(id, { budget: changes });
    this.#books.keyOf(id).budget =
      changes === null ? null : ({ ...before, ...changes } as unknown as BudgetInput);
  }

  async #moveKey(at: number, to: string | null): Promise<void> {
    if (to !== null && !this.#books.groups.has(to)) return;
    const { id } = this.#keyAt(at);
    await this.#gateway.keys.update(id, { group: to });
    this.#books.keyOf(id).group = to;
  }

  /** As an operator does it: the new name is added, the keys get it, and the old one is removed. */
  async #renameGroup({ name, to }: StepOf<'rename group'>): Promise<void> {
    const { groups } = this.#books;
    const renamed = groups.get(name);
    if (renamed === undefined || groups.has(to)) return;
    this.#reload(() => groups.set(to, renamed));
    for (const [at, { id }] of this.#keys.entries())
      if (this.#books.keyOf(id).group === name) await this.#moveKey(at, to);
    this.#reload(() => groups.delete(name));
  }

  async #restart(): Promise<void> {
    await this.#answerAll();
    await this.#gateway.close();
    await this.#startNext();
  }

  /** The next process begins without the end of this one; over one database, the old one settles its answers late. */
  async #kill(): Promise<void> {
    const [old, oldDatabase, running] = [this.#gateway, this.#database, this.#running];
    const { database, isShared } = await oldDatabase.kill();
    this.#database = database;
    this.#running = [];
    for (const { number } of running) this.#books.lose(number);
    await this.#startNext();
    await this.#check();
    for (const { number, answer, ended } of running) {
      answer();
      expectEqual((await ended).status, 200);
      if (isShared) this.#books.settle(number);
    }
    await old.close();
    if (!isShared) await oldDatabase.close();
  }

  async #ask(made: StepOf<'ask'>): Promise<void> {
    const running = this.#send(this.#keyAt(made.which).secret, made.tokens);
    running.answer();
    const response = await running.ended;
    if (this.#expectDecision(made.which, response)) {
      this.#books.begin(running.number, this.#keyAt(made.which).id, chargeOf(made.tokens));
      this.#books.settle(running.number);
    }
  }

  async #begin(made: StepOf<'begin'>): Promise<void> {
    const { id, secret } = this.#keyAt(made.which);
    const running = this.#send(secret, made.tokens);
    const refused = await Promise.race([this.#seen.get(running.number)?.promise, running.ended]);
    if (!this.#expectDecision(made.which, refused ?? null)) return;
    this.#books.begin(running.number, id, chargeOf(made.tokens));
    this.#books.hold(running.number, id, await this.#shownOf(made.which));
    this.#running.push(running);
  }

  /** Whether a request of a key is served, which must be as the sums say; `null` is one that is in progress. */
  #expectDecision(at: number, response: Response | null): boolean {
    const expected = this.#books.decide(this.#keyAt(at).id);
    expectEqual(response?.status ?? 200, expected);
    return expected === 200;
  }

  #send(secret: string, count: number): Running {
    const number = ++this.#lastNumber;
    const told = Promise.withResolvers<void>();
    this.#told.set(number, told);
    this.#seen.set(number, Promise.withResolvers<void>());
    const messages = [{ role: 'user', content: `ask ${number} for ${count}` }];
    const body = JSON.stringify({ model: 'small', messages, max_tokens: maxAnswerTokens });
    const ended = this.#fetch('chat/completions', secret, body).then(async (response) => {
      await response.arrayBuffer();
      return response;
    });
    return { number, tokens: count, answer: () => told.resolve(), ended };
  }

  #fetch(path: string, secret: string, body: string | null = null): Promise<Response> {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const method = body === null ? 'GET' : 'POST';
    return this.#gateway.fetch(new Request(`http://textgate/v1/${path}`, { method, headers, body }));
  }

  async #answer(at: number): Promise<void> {
    const running = this.#running[at % this.#running.length];
    if (running === undefined) return;
    this.#running = this.#running.filter((one) => one !== running);
    running.answer();
    expectEqual((await running.ended).status, 200);
    this.#books.settle(running.number);
  }

  async #answerAll(): Promise<void> {
    while (this.#running.length > 0) await this.#answer(0);
  }

  #keyAt(at: number): { readonly id: string; readonly secret: string } {
    const found = this.#keys[at];
    if (found === undefined) throw new Error(`there is no key ${at}`);
    return found;
  }

  /**
   * What the holder of a key sees of its budget and of that of its group; once the holder has read as often as one may in a
   * minute, what operators see of them.
   */
  async #shownOf(at: number): Promise<ShownBudgets> {
    const { id, secret } = this.#keyAt(at);
    if (!this.#reads.takes(id)) {
      const [{ budget: own }, { data: groups }] = await Promise.all([
        this.#gateway.keys.get(id),
        this.#gateway.keys.groups(),
      ]);
      const { group } = this.#books.keyOf(id);
      return { own, group: groups.find(({ name }) => name === group)?.budget ?? null };
    }
    const response = await this.#fetch('key', secret);
    expectEqual(response.status, 200);
    const { budget: own, group } = (await response.json()) as {
      readonly budget: ShownBudgets['own'];
      readonly group: { readonly budget: ShownBudgets['group'] } | null;
    };
    return { own, group: group?.budget ?? null };
  }

  /** Compares what holders and operators see with the sums. */
  async #check(): Promise<void> {
    const books = this.#books;
    const [{ data: keys }, { data }, ...own] = await Promise.all([
      this.#gateway.keys.list(),
      this.#gateway.keys.groups(),
      ...this.#keys.map((_, at) => this.#shownOf(at)),
    ]);
    for (const [at, { id }] of this.#keys.entries()) {
      const expected = books.shownOf(id);
      expectMatch(own[at], expected);
      expectMatch({ own: keys.find((key) => key.id === id)?.budget }, { own: expected.own });
    }
    expectEqual(
      data.map(({ name }) => name),
      [...books.groups.keys()].toSorted(),
    );
    for (const { name, budget: shown } of data) expectMatch({ shown }, { shown: books.groupShown(name) });
  }
}

function chargeOf(count: number): number {
  return (questionTokens + count) * tokenNanos;
}
