import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import { createMemoryLimiter } from '../../src/coordination/memory-limiter.ts';
import { isUsable } from '../../src/domain/keys/api-key.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { UpstreamAnswer, UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import type { ModelPrice } from '../../src/domain/money/pricing.ts';
import type { OnDisconnect } from '../../src/domain/routing.ts';
import { HedgeBudgets } from '../../src/domain/routing/hedging.ts';
import { RouteMeasure } from '../../src/domain/routing/route-measure.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { runTextRequest } from '../../src/pipeline/run-request.ts';
import type { ClientConnection } from '../../src/pipeline/client-connection.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { RunningClaims } from '../../src/pipeline/claims/running-claims.ts';
import { InFlight } from '../../src/pipeline/in-flight.ts';
import { defaultCompatibility } from '../../src/protocol/contract/compatibility.ts';
import type { Protocol } from '../../src/protocol/text.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { readFastPath } from '../../src/config/environment.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { createTokenUse } from '../../src/storage/token-use.ts';
import type { Store } from '../../src/storage/store.ts';
import { untraced } from '../../src/telemetry/traces/tracing.ts';
import { createFakeClock } from './fake-clock.ts';
import { openTestEngine } from './test-engine.ts';
import { localRoute, usualSettings } from './model-source.ts';
import type { FakeClock } from './fake-clock.ts';
import { bodyOf } from './body-of.ts';
import { clientFacts } from './client-facts.ts';

/** An upstream call whose answer the test drives. */
interface DrivenCall {
  /** Answers with some bytes, or an end: `null` for a complete body. */
  give(part: string | null | UpstreamFault): void;
}

/** One request through the whole pipeline, without any socket. */
export interface DrivenRequest {
  readonly id: string;
  readonly call: DrivenCall | null;
  /** Resolves when the exchange is concluded. */
  readonly done: Promise<void>;
  /** The bytes sent to the client, and the status and the charge of a whole answer. */
  readonly sent: { text: string; status: number | null; chargeNanos: number | null };
  leave(): void;
  /** Makes the head of a stream fail, as when the app around has answered already. */
  failToOpen(): void;
}

/** The pipeline on a real store in memory; the test drives upstream and clients. */
export interface PipelineHarness {
  readonly ports: Ports;
  readonly store: Store;
  readonly engine: Engine;
  readonly books: ReturnType<typeof createLedgerAudit>;
  readonly faults: string[];
  price: ModelPrice;
  onDisconnect: OnDisconnect;
  /** The measure of its only route. */
  readonly measure: RouteMeasure;
  readonly clock: FakeClock;
  /** `id` replaces a random one. */
  addKey(balanceNanos: number | null, id?: string): Promise<string>;
  change(keyId: string, changes: Partial<ApiKey>): void;
  /** `instead` replaces ports for this request only. */
  start(keyId: string, body: object, protocol?: Protocol, instead?: Partial<Ports>): Promise<DrivenRequest>;
  /** Waits until all work in progress has advanced as far as it can. */
  quiet(): Promise<void>;
  close(): Promise<void>;
}

export async function openPipeline(price: ModelPrice, holdTokens: number): Promise<PipelineHarness> {
  const clock = createFakeClock();
  const database = openTestEngine(':memory:', { clock });
  await database.ready;
  let unitsUnderWay = 0;
  const counted = <Result>(unit: Promise<Result>): Promise<Result> => {
    unitsUnderWay++;
    return unit.finally(() => unitsUnderWay--);
  };
  const engine = Object.assign(Object.create(database) as Engine, {
    run: (...unit: Parameters<Engine['run']>) => counted(database.run(...unit)),
    call: (...unit: Parameters<Engine['call']>) => counted(database.call(...unit)),
    read: (...statements: Parameters<Engine['read']>) => counted(database.read(...statements)),
    lookUp: (...statements: Parameters<Engine['lookUp']>) => counted(database.lookUp(...statements)),
  });
  const store = createStore(engine, {
    nextId: () => randomUUID(),
    now: () => clock.now(),
    report: (message) => void faults.push(message),
  });
  const keys = new Map<string, ApiKey>();
  const faults: string[] = [];
  let lastCall: DrivenCall | null = null;
  const harness = { price, onDisconnect: 'estimate' as OnDisconnect, measure: new RouteMeasure() };
  const ports: Ports = {
    clock,
    keys: {
      couldBeKey: () => true,
      async find(presented) {
        const key = keys.get(presented);
        return key !== undefined && isUsable(key, clock.now()) ? key : null;
      },
      findById: async () => null,
    },
    limiter: createMemoryLimiter(clock),
    tokenUse: createTokenUse(engine, (message) => void faults.push(message)),
    records: { ...store, takesWrites: true },
    models: {
      knows: () => true,
      find: async (id) => ({
        ...usualSettings,
        id,
        price: harness.price,
        holdTokens,
        routes: [{ ...localRoute, onDisconnect: harness.onDisconnect, measure: harness.measure }],
      }),
      list: async () => [],
    },
    upstreams: {
      async call({ onSent }, signal) {
        onSent?.();
        const { call, answer } = driveCall(signal);
        lastCall = call;
        return answer;
      },
    },
    telemetry: {
      waitBegan: () => {},
      waitEnded: () => {},
      exchangeBegan: () => {},
      streamOpened: () => {},
      exchangeEnded: () => {},
      fault: (message) => void faults.push(message),
    },
    tracer: untraced,
    groups: () => new Map(),
    inFlight: new InFlight(),
    claims: new RunningClaims({
      store,
      peers: null,
      holdsLease: () => true,
      clock,
      settings: () => ({ graceMs: 10_000, replayMs: 120_000 }),
    }),
    health: new UpstreamHealth(clock),
    upstreamLimiters: new MemoryUpstreamLimiters(clock, new Map()),
    hedges: new HedgeBudgets(),
    random: Math.random,
    fastPath: readFastPath(),
    tokens: { count: async (text) => text.length },
    shadows: null,
    settled: [],
    balanceMode: 'soft',
    defaultLimits: { concurrency: 1_000, requestsPerMinute: 1_000_000, queueWaitMs: 0 },
    defaultCompatibility,
  };
  const quiet = async (): Promise<void> => {
    for (let idleTurns = 0; idleTurns < 2; idleTurns++) {
      await setImmediate();
      if (unitsUnderWay === 0) continue;
      await database.run([]);
      idleTurns = -1;
    }
  };
  return Object.assign(harness, {
    ports,
    clock,
    store,
    engine,
    books: createLedgerAudit(engine),
    faults,
    async addKey(balanceNanos: number | null, id = `key_${randomUUID()}`) {
      const key: ApiKey = {
        id,
        name: 'x',
        createdAtMs: 0,
        limits: {},
        models: null,
        allowFrom: null,
        lowBalanceNanos: null,
        tags: [],
        expiresAt: null,
        budget: null,
        group: null,
        weight: 1,
        joinRetriesMs: null,
        revokedAtMs: null,
        hasBalance: balanceNanos !== null,
        compatibility: {},
        isDeclared: false,
      };
      await store.createKey(key, id, balanceNanos);
      keys.set(id, key);
      return id;
    },
    change(keyId: string, changes: Partial<ApiKey>) {
      const key = keys.get(keyId);
      if (key !== undefined) keys.set(keyId, { ...key, ...changes });
    },
    async start(keyId: string, body: object, protocol: Protocol = 'chat', instead: Partial<Ports> = {}) {
      lastCall = null;
      const { client, request } = driveClient(keyId, body);
      const done = runTextRequest(protocol, client, { ...ports, ...instead });
      await quiet();
      return { ...request, done, call: lastCall };
    },
    quiet,
    close: () => engine.close(),
  });
}

function driveCall(signal: AbortSignal): { readonly call: DrivenCall; readonly answer: UpstreamAnswer } {
  type Part = Uint8Array | null | UpstreamFault;
  const parts: Part[] = [];
  let waiting: ((part: Part) => void) | null = null;
  const onOver: (() => void)[] = [];
  const end = (): void => onOver.splice(0).forEach((callback) => callback());
  const give = (part: Part): void => {
    if (!(part instanceof Uint8Array)) end();
    if (waiting === null) return void parts.push(part);
    const resolve = waiting;
    waiting = null;
    resolve(part);
  };
  signal.addEventListener('abort', () => give({ kind: 'fault', fault: 'interrupted' }));
  return {
    call: { give: (part) => give(typeof part === 'string' ? Buffer.from(part) : part) },
    answer: {
      kind: 'answer',
      status: 200,
      contentType: 'text/event-stream',
      retryAfterMs: null,
      ...bodyOf(() =>
        parts.length > 0
          ? Promise.resolve(parts.shift() as Part)
          : new Promise((resolve) => (waiting = resolve)),
      ),
      whenOver: (callback) => void onOver.push(callback),
      release: end,
    },
  };
}

function driveClient(
  authorization: string,
  body: object,
): {
  readonly client: ClientConnection;
  readonly request: Pick<DrivenRequest, 'id' | 'sent' | 'leave' | 'failToOpen'>;
} {
  const id = randomUUID().replaceAll('-', '');
  const sent: DrivenRequest['sent'] = { text: '', status: null, chargeNanos: null };
  let leave = (): void => {};
  let opens = true;
  const take = async (text: string): Promise<void> => void (sent.text += text);
  return {
    request: { id: `req_${id}`, sent, leave: () => leave(), failToOpen: () => void (opens = false) },
    client: {
      ...clientFacts(id, authorization, body),
      onGone: (callback) => void (leave = callback),
      answer: (head, text) => {
        sent.status = head.status;
        sent.chargeNanos = head.chargeNanos;
        return take(text);
      },
      open: () => {
        if (!opens) throw new Error('the head was sent already');
      },
      // It keeps up.
      send: (text) => void (sent.text += text),
      end: take,
      tearDown: take,
    },
  };
}
