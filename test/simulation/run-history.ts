import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { Chance } from './chance.ts';
import { Checks } from './checks/checks.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { ClientRequest } from './client-request.ts';
import { noCounts } from './counts.ts';
import type { Counts } from './counts.ts';
import { MemoryDatabase } from './database/memory-database.ts';
import { GatewayProcess } from './gateway-process.ts';
import type { NodeDisk } from './gateway-process.ts';
import { planHistory } from './plan.ts';
import type { Plan, PlannedFault, PlannedRequest } from './plan.ts';
import { Violation } from './violation.ts';
import { VirtualTime } from './virtual-time.ts';
import type { World } from './world.ts';

/** How long after the last fault all must be in order, in milliseconds of virtual time. */
const orderLimitMs = 90_000;

/** How often it is looked whether it is, in milliseconds. */
const lookMs = 250;

/** How long a connection may stay silent before it is given up, in milliseconds. */
const silentMs = 10_000;

/** The number that turns the seed of a plan into that of its network. */
const networkSeed = 0x5eed_0001;

/** What one history was. */
export interface HistoryResult {
  readonly seed: number;
  readonly counts: Counts;
  readonly violation: Error | null;
  /** What happened, line by line, if it was asked for. */
  readonly log: readonly string[];
}

/** Runs the history of a seed; the same seed runs the same one. */
export async function runHistory(seed: number, isLogged = false): Promise<HistoryResult> {
  const history = new History(seed, isLogged);
  const violation = await history.run().then(
    () => null,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  return { seed, counts: history.world.counts, violation, log: history.log };
}

/** A node, and the process that runs on it. */
interface Node {
  readonly disk: NodeDisk;
  process: GatewayProcess | null;
}

class History {
  readonly world: World;
  readonly log: string[] = [];
  readonly #plan: Plan;
  readonly #nodes: readonly Node[];
  readonly #failed = Promise.withResolvers<never>();
  #requests = 0;
  #isOver = false;

  constructor(seed: number, isLogged: boolean) {
    const time = new VirtualTime();
    const plan = planHistory(seed);
    const database = new MemoryDatabase(() => time.nowMs);
    const counts = noCounts();
    this.#plan = plan;
    this.#nodes = plan.nodes.map(({ wallOffsetMs }, number) => ({
      disk: { name: `node-${number}`, spooled: [] as SettledRecord[], wallOffsetMs, processes: 0 },
      process: null,
    }));
    const processes = (): readonly GatewayProcess[] => this.#processes();
    this.world = {
      time,
      chance: new Chance(seed ^ networkSeed),
      plan,
      database,
      counts,
      checks: new Checks(plan, database, time, counts, processes),
      note: isLogged ? (text) => void this.log.push(`${time.nowMs} ${text()}`) : () => {},
    };
  }

  async run(): Promise<void> {
    const { time, checks, counts } = this.world;
    counts.histories = 1;
    for (const { id, credit, limits } of this.#plan.keys) {
      this.world.database.limits.set(id, limits);
      this.#credit(id, credit);
    }
    for (const { atMs, key, nanos } of this.#plan.credits)
      time.after(atMs, () => this.#credit(key.id, nanos));
    for (const node of this.#nodes) this.#start(node);
    for (const fault of this.#plan.faults)
      time.after(fault.atMs, () => this.#guard(() => this.#cause(fault)));
    for (const request of this.#plan.requests)
      time.after(request.atMs, () => this.#guard(() => this.#serve(request, request.repeats)));
    const ends = this.#plan.faults.map(({ atMs, lastsMs }) => atMs + lastsMs);
    time.after(Math.max(this.#plan.quietMs, ...ends) + 1, () => this.#guard(() => this.#awaitOrder()));
    await Promise.race([
      time.run(() => this.#isOver || checks.violation !== null),
      this.#failed.promise,
    ]).finally(() => (this.#isOver = true));
    counts.events = time.events;
    counts['seconds of virtual time'] = time.nowMs / 1_000;
    if (checks.violation !== null) throw checks.violation;
    checks.money.atTheEnd();
  }

  #credit(keyId: string, nanos: number): void {
    const { database, checks } = this.world;
    database.books.credit(keyId, nanos);
    checks.money.credited(keyId, nanos);
  }

  #start(node: Node): void {
    node.process = new GatewayProcess(node.disk, this.world);
    this.world.note(() => `${node.process?.name} starts`);
  }

  /** Serves a request, and as many after it as its client sends when it is refused. */
  #serve(planned: PlannedRequest, repeats: number): void {
    const process = this.#nodes[planned.node]?.process;
    if (process === undefined || process === null || !process.isServing) return;
    const request = new ClientRequest(
      requestIdFor(`${++this.#requests}`, Math.max(0, Math.floor(process.clock.now()))),
      planned,
      process,
      this.world,
    );
    const { time, chance } = this.world;
    request.serve().then((admission) => {
      if (admission === 'granted' || repeats === 0) return;
      const pauseMs = chance.pick([0, 1, 50, 1_000, 20_000]);
      if (time.nowMs + pauseMs < this.#plan.quietMs)
        time.after(pauseMs, () => this.#guard(() => this.#serve(planned, repeats - 1)));
    }, this.#failed.reject);
  }

  #cause(fault: PlannedFault): void {
    const { time, counts, note, database, checks } = this.world;
    const node = this.#nodes[fault.node];
    const process = node?.process ?? null;
    note(() => `${fault.kind} of node ${fault.node} for ${fault.lastsMs} ms`);
    const reach = fault.isSilent ? 'silent' : 'refused';
    const endsMs = time.nowMs + fault.lastsMs;
    if (fault.kind === 'outage') {
      counts['outages of the database']++;
      database.away = reach;
      checks.leases.awayMs = Math.max(checks.leases.awayMs, endsMs);
      // A connection that goes silent is given up after ten seconds, which is most of a lease.
      if (fault.isSilent) for (const each of this.#processes()) each.wire.disturb(endsMs + silentMs);
      time.after(fault.lastsMs, () => {
        if (time.nowMs >= checks.leases.awayMs) database.away = null;
      });
    }
    if (node === undefined || process === null) return;
    switch (fault.kind) {
      case 'kill':
        counts['processes that were killed']++;
        checks.leases.lost(process);
        this.#kill(node, process, fault.lastsMs);
        break;
      case 'stop':
        if (!process.isStopping) this.#stop(node, process, fault.lastsMs);
        break;
      case 'pause':
        counts['processes that were paused']++;
        process.pausedUntilMs = Math.max(process.pausedUntilMs, endsMs);
        checks.leases.lost(process);
        break;
      case 'jump':
        counts['wall clocks that jumped']++;
        node.disk.wallOffsetMs += fault.jumpMs;
        break;
      case 'cut':
        counts['nodes that were cut off']++;
        process.wire.cut = reach;
        process.wire.disturb(endsMs + silentMs);
        time.after(fault.lastsMs, () => (process.wire.cut = null));
        break;
      case 'outage':
    }
  }

  /** Nothing of the process happens any more; another one starts in its place. */
  #kill(node: Node, process: GatewayProcess, restartMs: number): void {
    process.isKilled = true;
    node.process = null;
    this.world.time.after(restartMs, () => {
      if (node.process === null) this.#start(node);
    });
  }

  #stop(node: Node, process: GatewayProcess, restartMs: number): void {
    const { time, counts, checks } = this.world;
    process.isServing = false;
    process.isStopping = true;
    const end = checks.pending(process, `the stop of ${process.name}`);
    const stopWhenIdle = (): void => {
      if (process.inFlight.size > 0) return void time.after(lookMs, stopWhenIdle, process);
      process.stop().then(() => {
        counts['processes that were stopped in order']++;
        end();
        this.#kill(node, process, restartMs);
      }, this.#failed.reject);
    };
    stopWhenIdle();
  }

  /** Waits until all is in order, which must not take long once the last fault is over. */
  #awaitOrder(): void {
    const { time, checks } = this.world;
    const limitMs = time.nowMs + orderLimitMs;
    const look = (): void => {
      const left = [
        ...checks.left(this.#processes()),
        ...this.#nodes.flatMap(({ process, disk: { name, spooled } }) =>
          process === null || spooled.length > 0 ? [`the process or the spool of ${name}`] : [],
        ),
      ];
      if (left.length === 0) this.#isOver = true;
      else if (time.nowMs < limitMs) time.after(lookMs, look);
      else this.#failed.reject(new Violation(`left at the end: ${left.join(', ')}`));
    };
    look();
  }

  #processes(): readonly GatewayProcess[] {
    return this.#nodes.flatMap(({ process }) => (process === null ? [] : [process]));
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#failed.reject(error);
    }
  }
}
