import type { Clock } from '../../domain/ports/clock.ts';
import type {
  UpstreamLimit,
  LimitQuotas,
  QuotaStore,
  QuotaDemand,
  QuotaLimiters,
} from '../../domain/ports/quotas.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { sumFaults } from '../../domain/fault-reports.ts';
import { TimeLimit } from '../../domain/time-limit.ts';
import { OwnQuota } from './own-quota.ts';

/** How often the quotas are renewed, in milliseconds. */
const renewMs = 1_000;

/** The shortest time from one renewal to the next, in milliseconds, while something waits for a quota. */
const pressMs = 100;

/** How long the last renewal may take, in milliseconds. */
const lastMs = 1_000;

/** What quotas are renewed with. */
interface RenewalOptions {
  readonly clock: Clock;
  /** Whether this process has its lease, as far as it can know: without it, it has no quotas. */
  readonly holdsLease: () => boolean;
  readonly onFault: ReportFault;
}

/**
 * Agrees with the other processes how much of the limits of upstreams this one may use: its quotas. It renews all of them every
 * second, and sooner while something waits for a quota. What it gives back it stops using before it says so: an answer
 * that is lost or late leaves the others less than there is, and never more.
 */
export class AgreedQuotas implements LimitQuotas {
  readonly #store: QuotaStore;
  readonly #options: RenewalOptions;
  readonly #clock: Clock;
  readonly #report: (error: unknown) => void;
  readonly #lastLimit: TimeLimit;
  readonly #quotas = new Map<string, OwnQuota>();
  #limiters: QuotaLimiters | null = null;
  /** The owner of the quotas that are kept here. */
  #owner: string | null = null;
  /** The number of the last call. */
  #turn = 0;
  /** When it began, and when the next one is looked at. */
  #begunMs = Number.NEGATIVE_INFINITY;
  #dueMs = Number.POSITIVE_INFINITY;
  #cancel = (): void => {};
  #renewing: Promise<void> | null = null;
  #wasHeld = false;
  #isClosed = false;

  constructor(store: QuotaStore, options: RenewalOptions) {
    const { clock, onFault } = options;
    this.#store = store;
    this.#options = options;
    this.#clock = clock;
    this.#report = sumFaults('quotas of the limits of upstreams could not be renewed', onFault, clock);
    this.#lastLimit = new TimeLimit(lastMs, clock, () => new StorageError('the database is slow', 'slow'));
  }

  of(upstream: string, limit: UpstreamLimit): number {
    return this.#holds ? (this.#quotas.get(nameOf(upstream, limit))?.usable ?? 0) : 0;
  }

  refresh(): void {
    this.#runIn(Math.max(0, this.#begunMs + pressMs - this.#clock.monotonicMs()));
  }

  /** Begins to renew the quotas of some limiters. */
  follow(limiters: QuotaLimiters): void {
    this.#limiters = limiters;
    this.#runIn(0);
  }

  /** Gives back what is not used; nothing may be started any more. Resolves when nothing is asked of the database. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#lastLimit.bound(() => this.#giveBack()).catch(this.#report);
  }

  get #holds(): boolean {
    return this.#options.holdsLease() && this.#store.owner() === this.#owner;
  }

  get #isPressing(): boolean {
    return [...this.#quotas.values()].some((quota) => quota.isPressing);
  }

  #runIn(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#isClosed || this.#renewing !== null || this.#dueMs <= atMs) return;
    this.#cancel();
    this.#dueMs = atMs;
    this.#cancel = this.#clock.schedule(delayMs, () => this.#run());
  }

  #run(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
    const isHeld = this.#options.holdsLease();
    if (isHeld && this.#store.owner() !== this.#owner) {
      this.#owner = this.#store.owner();
      for (const quota of this.#quotas.values()) quota.lose();
    }
    // What it had before its lease was over it may use again, if the lease was not ended meanwhile.
    if (isHeld && !this.#wasHeld) this.#limiters?.serve();
    this.#wasHeld = isHeld;
    this.#note();
    const leftMs = this.#begunMs + renewMs - this.#clock.monotonicMs();
    if (!isHeld || (leftMs > 0 && !this.#isPressing)) {
      this.#runIn(isHeld ? leftMs : renewMs);
      return;
    }
    this.#begunMs = this.#clock.monotonicMs();
    this.#renewing = this.#renew(this.#demands()).finally(() => {
      this.#renewing = null;
      this.#note();
      const pauseMs = this.#isPressing ? pressMs : renewMs;
      this.#runIn(Math.max(0, this.#begunMs + pauseMs - this.#clock.monotonicMs()));
    });
  }

  /** Notes what the limiters do with their limits, and with those that the config in force has no more. */
  #note(): void {
    const nowMs = this.#clock.monotonicMs();
    const unused = new Map(this.#quotas);
    for (const use of this.#limiters?.uses() ?? []) {
      const name = nameOf(use.upstream, use.limit);
      unused.delete(name);
      const quota = this.#quotas.get(name) ?? new OwnQuota(use);
      this.#quotas.set(name, quota);
      quota.note(use, nowMs);
    }
    for (const quota of unused.values()) quota.note(quota.dropped, nowMs);
  }

  #demands(): readonly QuotaDemand[] {
    const found = [...this.#quotas].map(([name, quota]) => ({
      name,
      quota,
      demand: quota.demand(this.#begunMs),
    }));
    // Of a limit that is gone the others know by now.
    for (const { name, quota, demand } of found)
      if (demand === null && quota.isDropped) this.#quotas.delete(name);
    return found.flatMap(({ demand }) => demand ?? []);
  }

  async #renew(demands: readonly QuotaDemand[]): Promise<void> {
    if (demands.length === 0) return;
    try {
      const granted = await this.#store.renew(++this.#turn, demands);
      const nowMs = this.#clock.monotonicMs();
      const grown = granted.filter((quota) =>
        this.#quotas.get(nameOf(quota.upstream, quota.limit))?.granted(quota, nowMs),
      );
      if (grown.length > 0) this.#limiters?.serve();
    } catch (error) {
      this.#report(error);
    }
  }

  async #giveBack(): Promise<void> {
    await this.#renewing;
    this.#note();
    const last = [...this.#quotas.values()].map((quota) => quota.leaving);
    if (last.length > 0 && this.#holds) await this.#store.renew(++this.#turn, last);
  }
}

/** The name under which a quota is kept. */
function nameOf(upstream: string, limit: UpstreamLimit): string {
  return `${limit} ${upstream}`;
}
