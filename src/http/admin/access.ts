import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../domain/ports/clock.ts';
import { isLoopback, networkOf } from '../../shared/ip-address.ts';
import { atMost } from '../../shared/at-most.ts';

/** How many wrong tokens one network may try within a window. */
const maxFailures = 10;
export const failureWindowMs = 60_000;

/** How many networks are counted at once; beyond that the least recently used one is dropped. */
const maxWatchedNetworks = 1_000;

/** How long a session lasts from its login on, whatever is done in it: a working day, in milliseconds. */
export const sessionMs = 12 * 3_600_000;

/**
 * How many sessions of each token that were logged out are remembered until their end. Beyond that the first one is
 * forgotten, and a copy of its cookie would count again.
 */
const maxEndedSessions = 10_000;

/** The random part of a session, in bytes. */
const nonceBytes = 16;

/** What a token allows: everything, or reading alone. */
type Role = 'admin' | 'read_only';

/** Who has a token: what it allows, and its name, as the audit shows it. */
export interface TokenHolder {
  readonly name: string;
  readonly role: Role;
}

/** What a login has opened, for the holder of the token that was given. */
export interface Session extends TokenHolder {
  /** The end of the session, in milliseconds since 1970. */
  readonly expiresAtMs: number;
  readonly nonce: string;
}

/** A token of the admin listener. No two have the same name or the same text. */
export interface AdminToken extends TokenHolder {
  readonly token: string;
}

/** Who may use the admin API of this process, whichever config is in force. */
export type AdminAccess = ReturnType<typeof createAdminAccess>;

/**
 * Checks tokens and sessions. A session is no state: its text has the role, the end and a nonce, and an HMAC over them by a
 * key that follows from the token that was given, and tells whose session it is. So every process with the same tokens knows
 * it, behind any balancer, and another token ends all sessions of the former one. Only the logout is state, and of this
 * process alone.
 */
export function createAdminAccess(first: readonly AdminToken[], clock: Clock) {
  const failures = new LRUCache<string, number>({ ...atMost(maxWatchedNetworks), ttl: failureWindowMs });
  let known = first.map((token) => credentialOf(token, []));
  const credentialNamed = (name: string): Credential | undefined =>
    known.find(({ holder }) => holder.name === name);
  return {
    /** Who has a token; `null` for a wrong one. */
    holderOf(token: string): TokenHolder | null {
      const presented = digest(token);
      // Every token is compared, so that the time does not tell which one is nearer.
      const matches = known.map((each) => timingSafeEqual(presented, each.digest));
      return known[matches.indexOf(true)]?.holder ?? null;
    },
    /** Opens a session for the holder of a token; returns it with the text that proves it. */
    openSession({ name, role }: TokenHolder): { readonly session: Session; readonly proof: string } {
      const session = {
        name,
        role,
        expiresAtMs: Math.floor((clock.now() + sessionMs) / 1_000) * 1_000,
        nonce: randomBytes(nonceBytes).toString('base64url'),
      };
      const credential = credentialNamed(name);
      if (credential === undefined) throw new Error(`no token has the name ${name}`);
      return { session, proof: `${claimOf(session)}.${sign(claimOf(session), credential)}` };
    },
    /** The session that a text proves; `null` for a forged or outdated text, and for a session that was logged out here. */
    findSession(proof: string): Session | null {
      const [, claim, role, seconds, nonce = '', mac = ''] = proofForm.exec(proof) ?? [];
      if (claim === undefined) return null;
      const presented = Buffer.from(mac);
      const found = known.find(
        (each) => each.holder.role === role && timingSafeEqual(presented, Buffer.from(sign(claim, each))),
      );
      if (found === undefined) return null;
      const session = { ...found.holder, expiresAtMs: Number(seconds) * 1_000, nonce };
      return clock.now() < session.expiresAtMs && !found.ended.has(nonce) ? session : null;
    },
    /** Lets a session count no longer on this process. */
    endSession({ name, nonce }: Session): void {
      const credential = credentialNamed(name);
      credential?.ended.set(nonce, true);
      for (const onEnd of credential?.waiting.get(nonce) ?? []) onEnd();
    },
    /** Lets these tokens count, and no others. What was begun with another one, or in a session of it, ends here. */
    replaceTokens(tokens: readonly AdminToken[]): void {
      const former = known;
      known = tokens.map((token) => credentialOf(token, former));
      const kept = new Set(known.map(({ waiting }) => waiting));
      for (const { waiting } of former)
        if (!kept.has(waiting)) for (const own of waiting.values()) for (const onEnd of own) onEnd();
    },
    /**
     * Calls back once when a session ends here, by its logout on this process or by its time, or when its token counts no
     * longer, which may be all that was given. The result cancels that.
     */
    whenEnded(
      { name, expiresAtMs, nonce = '' }: TokenHolder & Partial<Session>,
      onEnd: () => void,
    ): () => void {
      const waiting: Waiting = credentialNamed(name)?.waiting ?? new Map();
      if (expiresAtMs === undefined) return addWaiting(waiting, nonce, onEnd);
      const end = (): void => {
        cancel();
        onEnd();
      };
      const cancelTimer = clock.schedule(Math.max(0, expiresAtMs - clock.now()), end);
      const leave = addWaiting(waiting, nonce, end);
      const cancel = (): void => {
        cancelTimer();
        leave();
      };
      return cancel;
    },
    /** Whether an address has tried too many wrong tokens. */
    isBlocked: (address: string): boolean => (failures.get(watchedNetwork(address)) ?? 0) >= maxFailures,
    /** Counts a wrong token. */
    countFailure(address: string): void {
      const network = watchedNetwork(address);
      failures.set(network, (failures.get(network) ?? 0) + 1, { noUpdateTTL: true });
    },
  };
}

/** The text of a session: what it claims, and the HMAC over that, which has the length of SHA-256 in Base64. */
const proofForm = /^((admin|read_only)\.(\d{1,12})\.([\w-]{22}))\.([\w-]{43})$/;

/** A token, and what is known here of what was begun with it. */
interface Credential {
  readonly holder: TokenHolder;
  readonly digest: Buffer;
  readonly sessionKey: Buffer;
  /** The nonces of sessions that were logged out. */
  readonly ended: LRUCache<string, true>;
  readonly waiting: Waiting;
}

/** What waits for the end of a session, by its nonce, or of the token, by an empty one: as much as there are answers. */
type Waiting = Map<string, Set<() => void>>;

/** Adds what waits; the result takes it away. */
function addWaiting(waiting: Waiting, nonce: string, onEnd: () => void): () => void {
  const own = waiting.get(nonce) ?? new Set();
  waiting.set(nonce, own.add(onEnd));
  return () => {
    if (own.delete(onEnd) && own.size === 0) waiting.delete(nonce);
  };
}

/** One that was there before keeps what is known of it: a session that was logged out must not count again. */
function credentialOf({ name, role, token }: AdminToken, former: readonly Credential[]): Credential {
  const sessionKey = createHmac('sha256', token).update(`textgate console session: ${role}`).digest();
  const same = former.find((one) => one.sessionKey.equals(sessionKey));
  return {
    holder: { name, role },
    digest: digest(token),
    sessionKey,
    ended: same?.ended ?? new LRUCache<string, true>({ ...atMost(maxEndedSessions), ttl: sessionMs }),
    waiting: same?.waiting ?? new Map(),
  };
}

function claimOf({ role, expiresAtMs, nonce }: Omit<Session, 'name'>): string {
  return `${role}.${expiresAtMs / 1_000}.${nonce}`;
}

function sign(claim: string, { sessionKey }: Credential): string {
  return createHmac('sha256', sessionKey).update(claim).digest('base64url');
}

/** The network whose failures are counted together: one machine has all of 127.0.0.0/8 and ::1. */
function watchedNetwork(address: string): string {
  return isLoopback(address) ? 'loopback' : networkOf(address);
}

/** Digests have the equal lengths that `timingSafeEqual` needs. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
