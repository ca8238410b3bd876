import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Limits } from './limits.ts';

/** A sliding window in which the tokens of a key are counted, in slices: a slice leaves it as a whole. */
export interface TokenWindow {
  /** The limit that is held against it. */
  readonly setting: 'tokensPerMinute' | 'tokensPerDay';
  readonly lengthMs: number;
  readonly sliceMs: number;
  readonly words: string;
}

export const minuteWindow: TokenWindow = {
  setting: 'tokensPerMinute',
  lengthMs: 60_000,
  sliceMs: 1_000,
  words: 'any 60 seconds',
};
export const dayWindow: TokenWindow = {
  setting: 'tokensPerDay',
  lengthMs: 86_400_000,
  sliceMs: 600_000,
  words: 'any 24 hours',
};

/** The tokens that a key used in one slice of a window, and when it leaves the window, from now on. */
interface UsedSlice {
  readonly lengthMs: number;
  readonly tokens: number;
  readonly expiresInMs: number;
}

/** How a key stands to a limit of tokens. */
export interface TokenState {
  readonly limit: number;
  readonly words: string;
  /** The tokens that are left; 0 when the limit is reached. */
  readonly remaining: number;
  /** Milliseconds until the limit is not reached any more, or else until tokens leave the window; 0 when none were used. */
  readonly resetMs: number;
}

/** Whether a key has a limit of tokens: for one without, nothing is counted. */
export function hasTokenLimit({ tokensPerMinute, tokensPerDay }: Limits): boolean {
  return tokensPerMinute !== undefined || tokensPerDay !== undefined;
}

/**
 * The limit of tokens that decides: one that is reached, the one with the longest wait if both are; otherwise the one
 * with the fewest tokens left. `null` for a key without one.
 */
export function decideTokens(limits: Limits, slices: readonly UsedSlice[]): TokenState | null {
  const states = [minuteWindow, dayWindow].flatMap((window) => {
    const limit = limits[window.setting];
    return limit === undefined ? [] : [stateOf(window, limit, slices)];
  });
  const [first = null, ...others] = states;
  return others.reduce((found, other) => (isTighter(other, found) ? other : found), first);
}

function isTighter(state: TokenState, than: TokenState | null): boolean {
  if (than === null || state.remaining !== than.remaining)
    return state.remaining < (than?.remaining ?? Infinity);
  return state.resetMs > than.resetMs;
}

function stateOf({ lengthMs, words }: TokenWindow, limit: number, slices: readonly UsedSlice[]): TokenState {
  const own = slices
    .filter((slice) => slice.lengthMs === lengthMs)
    .toSorted((one, other) => one.expiresInMs - other.expiresInMs);
  let used = own.reduce((sum, { tokens }) => sum + tokens, 0);
  const remaining = Math.max(0, limit - used);
  let resetMs = own[0]?.expiresInMs ?? 0;
  for (const { tokens, expiresInMs } of own) {
    if (used < limit) break;
    used -= tokens;
    resetMs = expiresInMs;
  }
  return { limit, words, remaining, resetMs: Math.max(0, resetMs) };
}

/** The refusal of a key that has reached a limit of tokens; `null` if it has not. */
export function tokenRefusal(state: TokenState | null): Refusal | null {
  if (state === null || state.remaining > 0) return null;
  const { limit, words, resetMs } = state;
  return refuse(
    'rate_limit_exceeded',
    `This key may use ${limit} tokens in ${words} and has reached that limit. Try again in ${Math.ceil(resetMs / 1_000)}s.`,
    { limit: { source: 'key', kind: 'tokens', limit, retryAfterMs: resetMs } },
  );
}

/** The tokens that keys with a limit of tokens have used, where every node sees the same. */
export interface TokenUse {
  /** What a key used, as far as it still counts. Rejects with a `StorageError` when the database is away. */
  used(keyId: string): Promise<readonly UsedSlice[]>;
  /**
   * Adds tokens to what a key used. They are counted no later than a settlement of the key that is handed in after them.
   * Never rejects: what the database does not take is reported, and not counted.
   */
  add(keyId: string, tokens: number): Promise<void>;
}
