import type { Clock } from '../domain/ports/clock.ts';
import type { Certificates } from '../domain/ports/network.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import type {
  FoundRun,
  Peers,
  ResponseAction,
  RunEvent,
  RunEvents,
  WantedRun,
} from '../pipeline/claims/peers.ts';
import { parseJson } from '../shared/parse-json.ts';
import { openConnections } from './connections.ts';
import { HttpCall } from './http-call.ts';

/** How long a connection to another process may take, in milliseconds: it is in the same network. */
const connectMs = 1_000;

/** How long an answer may take to begin, in milliseconds: that of a run does at once, and what is cancelled is settled first. */
const headMs = { join: 2_000, response: 10_000 } as const;

/** How long another process may be silent, in milliseconds: it sends an empty line every five seconds. */
const silentMs = 15_000;

/** The longest time of a call, in milliseconds: runs end by their own limits before. */
const totalMs = 86_400_000;

/** The longest line, in UTF-16 code units: what is asked has the instructions of a request, which may be as large as its body. */
const maxLineChars = 67_108_864;

/** What another process is reached by. */
export interface PeerClientOptions {
  /** The addresses of the others, by the ids under which they have their leases. */
  readonly addresses: () => Promise<ReadonlyMap<string, string>>;
  readonly token: string;
  /** What their certificates are verified with. */
  readonly certificates: () => Certificates;
  readonly clock: Clock;
}

/** Asks the other processes over HTTP, each in one hop: no redirect is followed, and no proxy is used. */
export function createPeerClient({ addresses, token, certificates, clock }: PeerClientOptions) {
  const pools = new Map<string, ReturnType<typeof openConnections>['pool']>();
  const poolOf = (address: string): ReturnType<typeof openConnections>['pool'] => {
    const known = pools.get(address);
    if (known !== undefined) return known;
    const { pool } = openConnections(address, { connectMs, allowLinkLocal: true, certificates });
    pools.set(address, pool);
    return pool;
  };
  /** The addresses of the others; connections to those that have ended are closed. */
  const others = async (owner: string | null): Promise<readonly string[]> => {
    const found = await addresses();
    const living = new Set(found.values());
    for (const [address, pool] of pools)
      if (!living.has(address)) {
        pools.delete(address);
        void pool.destroy();
      }
    if (owner === null) return [...living];
    const address = found.get(owner);
    return address === undefined ? [] : [address];
  };
  const ask = (address: string, path: keyof typeof headMs, asked: object, signal: AbortSignal) =>
    new Promise<UpstreamAnswer | UpstreamFault>((resolve) => {
      const terms = {
        clock,
        deadlines: { firstByteMs: headMs[path], idleMs: silentMs, totalMs },
        afterRead: queueMicrotask,
        signal,
        onSent: undefined,
        learnsLimits: false,
        decodes: false,
        forwarding: null,
      };
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const call = { method: 'POST', path: `/${path}`, body: JSON.stringify(asked), headers } as const;
      poolOf(address).dispatch(call, new HttpCall(resolve, terms));
    });
  const join = async (address: string, wanted: WantedRun, signal: AbortSignal) => {
    const leaving = new AbortController();
    const asking = ask(address, 'join', wanted, AbortSignal.any([signal, leaving.signal]));
    // It rejects where this process is about to end.
    const answer = await asking.catch(() => null);
    if (answer?.kind !== 'answer' || answer.status !== 200) return null;
    const events = readEvents(answer, () => leaving.abort());
    const first = await events.next();
    return first === null ? null : { first, events };
  };
  return {
    async join(wanted, owner, signal) {
      const asked = (await others(owner)).map((address) => join(address, wanted, signal));
      const found = await firstOf(asked, (one): one is FoundRun => one?.first.kind === 'joined');
      const left = asked.map(async (asking) => {
        const one = await asking;
        // Two have it only where one of them has lost its lease.
        if (one !== found) one?.events.leave();
        return one?.first.kind === 'refused' ? one.first.reason : 'unreachable';
      });
      if (found !== null) return found;
      return (await Promise.all(left)).find((reason) => reason !== 'none') ?? 'none';
    },
    async respond(wanted, action: ResponseAction) {
      const { signal } = new AbortController();
      const asked = (await others(null)).map(async (address) => {
        const answer = await ask(address, 'response', { ...wanted, action }, signal);
        return answer.kind === 'answer' && answer.status === 200 ? readWhole(answer) : null;
      });
      return firstOf(asked, (one) => one !== null);
    },
    /** Closes all connections. */
    close: () => Promise.all([...pools.values()].map((pool) => pool.destroy())),
  } satisfies Peers & { close(): unknown };
}

/** The first of some results that is what is looked for, without waiting for the others; `null` where none is. */
function firstOf<Result, Wanted extends Result>(
  asked: readonly Promise<Result>[],
  isWanted: (one: Result) => one is Wanted,
): Promise<Wanted | null> {
  const wanted = asked.map(async (asking) => {
    const one = await asking;
    if (isWanted(one)) return one;
    throw new Error('not what is looked for');
  });
  return Promise.any(wanted).catch(() => null);
}

/** Reads the events of a run, a line of JSON each; empty lines say that the other process is alive. */
function readEvents(answer: UpstreamAnswer, leave: () => void): RunEvents {
  const decoder = new TextDecoder();
  let text = '';
  return {
    async next() {
      for (;;) {
        const end = text.indexOf('\n');
        if (end !== -1) {
          const line = text.slice(0, end);
          text = text.slice(end + 1);
          // A line that is none can only be a part of one.
          if (line !== '') return (parseJson(line) as RunEvent | undefined) ?? null;
          continue;
        }
        const piece = text.length > maxLineChars ? null : await answer.read();
        if (!(piece instanceof Uint8Array)) return null;
        text += decoder.decode(piece, { stream: true });
      }
    },
    leave,
  };
}

async function readWhole(answer: UpstreamAnswer): Promise<string | null> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = await answer.read();
    if (piece === null) return Buffer.concat(pieces).toString();
    if (!(piece instanceof Uint8Array)) return null;
    pieces.push(piece);
  }
}
