import type { Clock } from '../domain/ports/clock.ts';
import type { Certificates } from '../domain/ports/network.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import type {
  FoundRun,
  Peers,
  ResponseAction,
  RunEvent,
  RunEvents,
  WantedRequest,
  WantedRun,
} from '../pipeline/claims/peers.ts';
import { parseJson } from '../shared/parse-json.ts';
import { openConnections } from './connections.ts';
import { HttpCall } from './http-call.ts';

/** How long a connection to another process may take, in milliseconds: it is in the same network. */
const connectMs = 1_000;

/** How long an answer may take to begin, in milliseconds: that of a run does at once, and what is cancelled is settled first. */
const headMs = { join: 2_000, read: 2_000, cancel: 10_000, delivered: 2_000 } as const;

/** How long another process may be silent, in milliseconds: it sends an empty line every five seconds. */
const silentMs = 15_000;

/** The longest time of a call, in milliseconds: runs end by their own limits before. */
const totalMs = 86_400_000;

/** The longest line, in UTF-16 code units: what is asked has the instructions of a request, which may be as large as its body. */
const maxLineChars = 67_108_864;

/** What a process says of a response. */
type Responded = Awaited<ReturnType<Peers['respond']>>;

/** What another process is reached by. */
export interface PeerClientOptions {
  /** The addresses of the others, or of the one with a lease under an id. */
  readonly addresses: (owner: string | null) => Promise<readonly string[]>;
  readonly token: string;
  /** What their certificates are verified with. */
  readonly certificates: () => Certificates;
  readonly clock: Clock;
}

/** Makes the calls to other processes, over connections of their own. */
function createCalls({ addresses, token, certificates, clock }: PeerClientOptions) {
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
    const found = await addresses(owner);
    if (owner !== null) return found;
    for (const [address, pool] of pools)
      if (!found.includes(address)) {
        pools.delete(address);
        void pool.close();
      }
    return found;
  };
  const ask = (address: string, what: keyof typeof headMs, asked: object, signal: AbortSignal) =>
    new Promise<UpstreamAnswer | UpstreamFault>((resolve) => {
      const terms = {
        clock,
        deadlines: { firstByteMs: headMs[what], idleMs: silentMs, totalMs },
        afterRead: queueMicrotask,
        signal,
        onSent: undefined,
        learnsLimits: false,
        decodes: false,
        forwarding: null,
      };
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const call = { method: 'POST', path: `/${what}`, body: JSON.stringify(asked), headers } as const;
      poolOf(address).dispatch(call, new HttpCall(resolve, terms));
    });
  const close = () => Promise.all([...pools.values()].map((pool) => pool.destroy()));
  return { others, ask, close };
}

/** Asks the other processes over HTTP, each in one hop: no redirect is followed, and no proxy is used. */
export function createPeerClient(options: PeerClientOptions) {
  const { others, ask, close } = createCalls(options);
  const join = async (address: string, wanted: WantedRun, signal: AbortSignal) => {
    const leaving = new AbortController();
    const asking = ask(address, 'join', wanted, AbortSignal.any([signal, leaving.signal]));
    // It rejects where this process is about to end.
    const answer = await asking.catch(() => null);
    if (answer?.kind !== 'answer' || answer.status !== 200) return null;
    const events = readEvents(answer, () => leaving.abort());
    const first = await events.next();
    if (first !== null) return { first, events, tellDelivered: () => tellDelivered(address, wanted, first) };
    events.leave();
    return null;
  };
  const never = new AbortController().signal;
  const tellDelivered = (address: string, { keyId }: WantedRun, first: RunEvent): void => {
    if (first.kind !== 'joined') return;
    const delivered = { kind: 'request', keyId, requestId: first.requestId };
    // Where it does not hear of it, a further retry may get the answer once more.
    ask(address, 'delivered', delivered, never).then(
      (answer) => (answer.kind === 'answer' ? answer.release() : undefined),
      () => {},
    );
  };
  const respond = async (
    address: string,
    wanted: WantedRequest,
    action: ResponseAction,
  ): Promise<Responded> => {
    const answer = await ask(address, action, wanted, never).catch(() => null);
    if (answer?.kind !== 'answer') return 'unreachable';
    if (answer.status !== 200) {
      answer.release();
      return answer.status === 404 ? 'none' : 'unreachable';
    }
    const body = await readWhole(answer);
    return body === null ? 'unreachable' : { body };
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
      const asked = (await others(null)).map((address) => respond(address, wanted, action));
      const found = await firstOf(asked, (one) => typeof one === 'object');
      if (found !== null) return found;
      return (await Promise.all(asked)).includes('unreachable') ? 'unreachable' : 'none';
    },
    /** Closes all connections. */
    close,
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
  /** The whole lines that are still to be read, and the beginning of the next one. */
  let lines: string[] = [];
  let begun: string[] = [];
  let begunChars = 0;
  return {
    async next() {
      for (;;) {
        const line = lines.shift();
        // A line that is none can only be a part of one.
        if (line !== undefined && line !== '') return (parseJson(line) as RunEvent | undefined) ?? null;
        if (line !== undefined) continue;
        const piece = begunChars > maxLineChars ? null : await answer.read();
        if (!(piece instanceof Uint8Array)) return null;
        const [first = '', ...others] = decoder.decode(piece, { stream: true }).split('\n');
        begun.push(first);
        begunChars += first.length;
        const last = others.pop();
        if (last === undefined) continue;
        lines = [begun.join(''), ...others];
        begun = [last];
        begunChars = last.length;
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
