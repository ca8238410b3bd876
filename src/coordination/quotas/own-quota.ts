import type { GrantedQuota, LimitUse, QuotaDemand } from '../../domain/ports/quotas.ts';

/** How long the needs of a process are remembered, in milliseconds: between one and two such times. */
const rememberMs = 5_000;

/** Which part of a limit a process that uses it wants beside its needs, so that the next requests find a quota. */
const spareParts = 4;

/** How long a limit that this process does not use goes without being named to the others, in milliseconds. */
const unnamedMs = 10_000;

/** What a limit is that the config in force does not have. */
const noLimit = Number.MAX_SAFE_INTEGER;

/** The quota of this process in one limit. */
export class OwnQuota {
  #use: LimitUse;
  /** What the database has as the quota of this process, or more than that. */
  #quota = 0;
  /** The fair part: of a larger quota no more is used than this. */
  #target = 0;
  /** The most that was needed since `#sinceMs`, and in the time before that. */
  #peak = 0;
  #earlierPeak = 0;
  #sinceMs = Number.NEGATIVE_INFINITY;
  /** What was last said of a limit in which this process has nothing, and when; `null` where it has, or may have, something. */
  #quiet: { readonly most: number; readonly atMs: number } | null = null;

  constructor(use: LimitUse) {
    this.#use = use;
  }

  get isDropped(): boolean {
    return this.#use.most === noLimit;
  }

  /** The use of a limit that the config in force has no more. */
  get dropped(): LimitUse {
    return { ...this.#use, most: noLimit, used: 0, waiting: 0 };
  }

  /** What may be used. */
  get usable(): number {
    return Math.min(this.#quota, this.#target);
  }

  /** Whether the database has to be asked soon: something waits for a quota, or others wait for what is not used here. */
  get isPressing(): boolean {
    const { most, used } = this.#use;
    const isShort = this.#needs > this.usable && this.usable < most;
    return isShort || this.#quota > Math.max(used, this.#target);
  }

  /** Notes what this process does with the limit. */
  note(use: LimitUse, nowMs: number): void {
    this.#use = use;
    if (this.isDropped) this.#peak = this.#earlierPeak = 0;
    const ageMs = nowMs - this.#sinceMs;
    if (ageMs >= rememberMs) {
      this.#earlierPeak = ageMs < 2 * rememberMs ? this.#peak : 0;
      this.#peak = 0;
      this.#sinceMs = nowMs;
    }
    this.#peak = Math.max(this.#peak, this.#needs);
  }

  /** Forgets what it had, as its lease was ended: it has what it uses, and may use no more. */
  lose(): void {
    this.#quota = 0;
    this.#target = 0;
    this.#quiet = null;
  }

  /**
   * What to ask for. From now on it has no more than it says, whether or not the answer comes: what others are granted
   * meanwhile must not be used here. `null` where there is nothing new to say.
   */
  demand(nowMs: number): QuotaDemand | null {
    const { upstream, limit, most, used } = this.#use;
    const peak = Math.max(this.#peak, this.#earlierPeak);
    const spare = Math.ceil(most / spareParts);
    const wants = peak === 0 ? 0 : Math.min(most, Math.max(peak, this.#needs + spare));
    const keeps = Math.max(used, Math.min(this.usable, wants));
    const isQuiet = wants === 0 && keeps === 0;
    if (isQuiet && this.#quiet?.most === most && nowMs - this.#quiet.atMs < unnamedMs) return null;
    this.#quota = keeps;
    this.#quiet = null;
    return { upstream, limit, most, keeps, needs: this.#needs, wants };
  }

  /** What to ask for last, before the lease ends: what was started within the minute still counts for others. */
  get leaving(): QuotaDemand {
    const { upstream, limit, most, used } = this.#use;
    this.#quota = used;
    return { upstream, limit, most, keeps: used, needs: used, wants: used };
  }

  /** Takes the answer to its last demand; returns whether it may use more than before. */
  granted({ quota, target }: GrantedQuota, nowMs: number): boolean {
    const before = this.usable;
    this.#quota = quota;
    this.#target = target;
    this.#quiet = quota === 0 ? { most: this.#use.most, atMs: nowMs } : null;
    return this.usable > before;
  }

  get #needs(): number {
    const { most, used, waiting } = this.#use;
    return Math.min(most, used + waiting);
  }
}
