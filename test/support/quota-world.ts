import { leaseMs } from '../../src/domain/ports/leases.ts';
import { AgreedQuotas } from '../../src/coordination/quotas/agreed-quotas.ts';
import type { GrantedQuota, LimitUse, UpstreamLimit, QuotaDemand } from '../../src/domain/ports/quotas.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';

const [minuteMs, marginMs, renewMs, stepMs] = [60_000, 1_000, 5_000, 100];

/** What becomes of a call of the database, which a process makes to renew its quotas. */
export type Fate =
  | 'prompt'
  /** It is done, and the answer is lost. */
  | 'unanswered'
  | 'never done'
  /** It fails for the process, and is done when it is released. */
  | 'done late'
  /** It is done at once, and answered when it is released. */
  | 'answered late'
  /** It is done and answered when it is released. */
  | 'slow';

/** The limits of the one upstream; without a number there is none of the kind. */
export type Limits = Readonly<Partial<Record<UpstreamLimit, number>>>;

/** The database: what renews quotas in it, and what follows its leases and its time. */
export interface QuotaDatabase {
  renew(owner: string, turn: number, demands: readonly QuotaDemand[]): Promise<readonly GrantedQuota[]>;
  setOwners(owners: ReadonlySet<string>): Promise<void>;
  setTime(nowMs: number): Promise<void>;
}

interface Started {
  readonly node: Node;
  readonly owner: string;
  readonly atMs: number;
  readonly tokens: number;
  ended: boolean;
}

const amountOf = (limit: UpstreamLimit, tokens: number): number => (limit === 'tokensPerMinute' ? tokens : 1);

/** Processes that start requests at one upstream, within their quotas. */
export class QuotaWorld {
  readonly clock: FakeClock = createFakeClock(0);
  readonly database: QuotaDatabase;
  readonly excesses: string[] = [];
  nodes: Node[] = [];
  limits: Limits;
  /** Of each kind, what may be in use: a limit that was lowered is kept once no process has more of it. */
  bounds: Limits;
  started: Started[] = [];
  /** How often the limits have changed. */
  changes = 0;
  readonly #released: (() => Promise<void>)[] = [];
  #underWay: Promise<unknown>[] = [];
  #names = 0;

  constructor(database: QuotaDatabase, limits: Limits) {
    this.database = database;
    this.limits = limits;
    this.bounds = limits;
  }

  get owners(): ReadonlySet<string> {
    return new Set(this.nodes.filter(({ hasRow }) => hasRow).map(({ owner }) => owner));
  }

  nextName(): string {
    return `owner-${String(this.#names++).padStart(4, '0')}`;
  }

  async add(): Promise<Node> {
    const node = new Node(this);
    this.nodes.push(node);
    await this.database.setOwners(this.owners);
    node.begin();
    return node;
  }

  /** Lets time pass, with everything that it brings. */
  async pass(durationMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < durationMs; passedMs += stepMs) {
      this.clock.advance(Math.min(stepMs, durationMs - passedMs));
      await this.database.setTime(this.clock.monotonicMs());
      await this.keepLeases();
      for (const node of this.nodes) node.serve();
      await this.settled();
    }
  }

  async keepLeases(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    const before = [...this.owners].join();
    for (const node of this.nodes) {
      if (node.hasRow && nowMs - node.renewedMs >= leaseMs + marginMs) node.hasRow = false;
      if (!node.isCut && nowMs - node.renewedMs >= renewMs) node.renew();
    }
    if ([...this.owners].join() !== before) await this.database.setOwners(this.owners);
  }

  call(node: Node, turn: number, demands: readonly QuotaDemand[]): Promise<readonly GrantedQuota[]> {
    const { owner, fate } = node;
    node.fate = 'prompt';
    const { changes } = this;
    const run = async () => {
      const granted = await this.database.renew(owner, turn, demands);
      node.told = Math.max(node.told, changes);
      return granted;
    };
    const lost = new Error('the database is away');
    if (node.isCut || fate === 'never done') return Promise.reject(lost);
    if (fate === 'prompt') return this.#track(run());
    if (fate === 'unanswered') return this.#track(run().then(() => Promise.reject(lost)));
    if (fate === 'done late') {
      this.#released.push(async () => void (await run()));
      return Promise.reject(lost);
    }
    const begun = fate === 'answered late' ? this.#track(run()) : null;
    return new Promise((resolve, reject) => {
      this.#released.push(() => (begun ?? run()).then(resolve, reject));
    });
  }

  /** Goes on with one of the calls that are held up. */
  async release(index: number): Promise<void> {
    const [goOn] = this.#released.splice(index % Math.max(1, this.#released.length), 1);
    await goOn?.();
    await this.settled();
  }

  async releaseAll(): Promise<void> {
    while (this.#released.length > 0) await this.release(0);
  }

  /** Resolves when no call is under way that is not held up, and what follows from it is done. */
  async settled(): Promise<void> {
    do {
      const underWay = this.#underWay;
      this.#underWay = [];
      await Promise.all(underWay);
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
    } while (this.#underWay.length > 0);
  }

  setLimits(limits: Limits): void {
    this.changes++;
    const before = this.limits;
    this.limits = limits;
    const names = Object.entries(limits) as [UpstreamLimit, number][];
    this.bounds = Object.fromEntries(
      names.map(([limit, most]) => {
        const bound = before[limit] === undefined ? Number.POSITIVE_INFINITY : this.bounds[limit];
        return [limit, Math.max(most, bound ?? most)];
      }),
    );
    for (const node of this.nodes) node.serve();
  }

  /** How much of a limit the upstream has now, without requests that go on after the lease of their process was ended. */
  inUse(limit: UpstreamLimit): number {
    const sinceMs = this.clock.monotonicMs() - minuteMs;
    const counted = this.started.filter(({ node, owner, ended, atMs }) =>
      limit === 'maxInFlight' ? !ended && node.owner === owner && node.hasRow : atMs > sinceMs,
    );
    return counted.reduce((total, { tokens }) => total + amountOf(limit, tokens), 0);
  }

  start(node: Node, tokens: number): Started {
    const request = { node, owner: node.owner, atMs: this.clock.monotonicMs(), tokens, ended: false };
    this.started.push(request);
    for (const [limit, most] of Object.entries(this.bounds) as [UpstreamLimit, number][]) {
      const used = this.inUse(limit);
      if (used > most) this.excesses.push(`${used} of ${most} ${limit} at ${request.atMs} ms`);
    }
    return request;
  }

  /** A lowered limit, or a new one, holds as soon as all have told what they use, and have no more together. */
  tightenBounds(): void {
    if (this.nodes.some(({ isLive, told }) => isLive && told < this.changes)) return;
    this.bounds = Object.fromEntries(
      Object.entries(this.limits).map(([name, most]) => {
        const limit = name as UpstreamLimit;
        const all = this.nodes.reduce((total, node) => total + node.mayHave(limit), 0);
        return [limit, Math.max(all, this.inUse(limit)) <= most ? most : (this.bounds[limit] ?? most)];
      }),
    );
  }

  #track<Result>(call: Promise<Result>): Promise<Result> {
    this.#underWay.push(call.catch(() => {}));
    return call;
  }
}

/** One process, with a limiter that counts and has one queue. */
export class Node {
  readonly quotas: AgreedQuotas;
  readonly #world: QuotaWorld;
  owner: string;
  /** Whether the database has its lease. */
  hasRow = true;
  renewedMs: number;
  /** Whether it has no connection to the database. */
  isCut = false;
  /** Whether it was not killed. */
  isLive = true;
  fate: Fate = 'prompt';
  /** The number of changes of limits that the database knows from it. */
  told = 0;
  waiting: number[] = [];
  mine: Started[] = [];

  constructor(world: QuotaWorld) {
    this.#world = world;
    this.owner = world.nextName();
    this.renewedMs = world.clock.monotonicMs();
    const { clock } = world;
    this.quotas = new AgreedQuotas(
      { owner: () => this.owner, renew: (turn, demands) => world.call(this, turn, demands) },
      { clock, holdsLease: () => clock.monotonicMs() - this.renewedMs < leaseMs, onFault: () => {} },
    );
  }

  begin(): void {
    this.quotas.follow({ uses: () => this.#uses(), serve: () => this.serve() });
  }

  renew(): void {
    if (!this.hasRow) this.owner = this.#world.nextName();
    this.hasRow = true;
    this.renewedMs = this.#world.clock.monotonicMs();
  }

  arrive(tokens: number): void {
    this.waiting.push(tokens);
    this.serve();
    this.quotas.refresh();
  }

  finish(index: number): void {
    const running = this.mine.filter(({ ended }) => !ended);
    const request = running[index % Math.max(1, running.length)];
    if (request === undefined) return;
    request.ended = true;
    this.serve();
    this.quotas.refresh();
  }

  /** Ends at once, with its requests; its lease runs out. */
  kill(): void {
    this.isCut = true;
    this.isLive = false;
    this.waiting = [];
    for (const request of this.mine) request.ended = true;
    void this.quotas.close();
  }

  serve(): void {
    for (let [tokens] = this.waiting; tokens !== undefined && this.#fits(tokens); [tokens] = this.waiting) {
      this.waiting.shift();
      this.mine.push(this.#world.start(this, tokens));
    }
  }

  get running(): number {
    return this.mine.filter(({ ended }) => !ended).length;
  }

  mayHave(limit: UpstreamLimit): number {
    return Math.max(this.#used(limit), this.quotas.of('up', limit));
  }

  #fits(tokens: number): boolean {
    return this.#uses().every(({ limit, most, used }) => {
      const own = Math.min(most, this.quotas.of('up', limit));
      return used + amountOf(limit, tokens) <= own;
    });
  }

  #used(limit: UpstreamLimit): number {
    const sinceMs = this.#world.clock.monotonicMs() - minuteMs - marginMs;
    return this.mine
      .filter(({ ended, atMs }) => (limit === 'maxInFlight' ? !ended : atMs > sinceMs))
      .reduce((total, { tokens }) => total + amountOf(limit, tokens), 0);
  }

  #uses(): readonly LimitUse[] {
    return (Object.entries(this.#world.limits) as [UpstreamLimit, number][]).map(([limit, most]) => ({
      upstream: 'up',
      limit,
      most,
      used: this.#used(limit),
      waiting: this.waiting.reduce((total, tokens) => total + amountOf(limit, tokens), 0),
    }));
  }
}
