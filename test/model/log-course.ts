import type { LogEvent } from './claim-log.ts';

/** A client that is not gone, and what it may do. */
interface KnownClient {
  /** Which process it has asked. */
  readonly process: number;
  readonly mayLeave: boolean;
  /** Of several that have left a process, the one that is gone last may ask: it can do all that the others can. */
  readonly mayAsk: boolean;
  /** Whether the log says later that it got an answer. */
  readonly hasAnswer: boolean;
  /** The place of the event by which it is gone. */
  readonly goneAt: number;
}

/** What a log says, before an event, of what may happen unseen. */
export interface Course {
  /** The clients that are not gone. */
  readonly clients: ReadonlyMap<number, KnownClient>;
  /** The processes that can't have the database again. */
  readonly isCutOff: ReadonlySet<number>;
  readonly mayLoseLease: ReadonlySet<number>;
  /** The processes that lose the database later on. */
  readonly losesDatabaseLater: ReadonlySet<number>;
  /** Whether the processes can't reach each other. */
  readonly areApart: boolean;
  readonly mayCrash: boolean;
  readonly crashesLater: boolean;
  /** The calls that were answered whole, and those of them whose process stood still then, and has not read all of it. */
  readonly answered: ReadonlySet<number>;
  readonly unread: ReadonlySet<number>;
  /** How each call ends, now or later. */
  readonly fates: ReadonlyMap<number, 'is answered' | 'is cut off'>;
  readonly processOf: ReadonlyMap<number, number>;
}

/** Each event of a log, with what holds before it. */
export function followLog(
  events: readonly LogEvent[],
  fates: Course['fates'],
): readonly { readonly event: LogEvent; readonly course: Course }[] {
  const clients = new Map<number, KnownClient>();
  const goneAt = (client: number, from: number): number => {
    const found = events.findIndex(
      (one, at) => at >= from && one.what === 'is gone' && one.client === client,
    );
    return found < 0 ? events.length : found;
  };
  const hasAnswer = (client: number, from: number): boolean =>
    events
      .slice(from, goneAt(client, from))
      .some((one) => (one.what === 'is served' || one.what === 'is told') && one.client === client);
  const leave = (client: number, at: number): void => {
    const { process = -1 } = clients.get(client) ?? {};
    const others = [...clients].filter(([, other]) => other.mayLeave && other.process === process);
    const isLast = others.every(([other]) => goneAt(other, at) <= goneAt(client, at));
    if (isLast) for (const [other, known] of others) clients.set(other, { ...known, mayAsk: false });
    clients.set(client, {
      process,
      mayLeave: true,
      mayAsk: isLast,
      hasAnswer: hasAnswer(client, at),
      goneAt: goneAt(client, at),
    });
  };
  const [isCutOff, mayLoseLease, answered] = [new Set<number>(), new Set<number>(), new Set<number>()];
  const processOf = new Map<number, number>();
  const [unread, isStill] = [new Set<number>(), new Set<number>()];
  const flags = { areApart: false, mayCrash: false };
  return events.map((event, at) => {
    const later = events.slice(at);
    const course: Course = {
      clients: new Map(clients),
      isCutOff: new Set(isCutOff),
      mayLoseLease: new Set(mayLoseLease),
      losesDatabaseLater: new Set(
        later.flatMap((one) => (one.what === 'loses the database' ? [one.process] : [])),
      ),
      ...flags,
      crashesLater: later.some(({ what }) => what === 'the database may crash'),
      answered: new Set(answered),
      unread: new Set(unread),
      fates,
      processOf: new Map(processOf),
    };
    if (event.what === 'asks')
      clients.set(event.client, {
        process: event.process,
        mayLeave: false,
        mayAsk: true,
        hasAnswer: true,
        goneAt: goneAt(event.client, at),
      });
    else if (event.what === 'leaves') leave(event.client, at);
    else if (event.what === 'is gone') clients.delete(event.client);
    else if (event.what === 'is called') processOf.set(event.call, event.process);
    else if (event.what === 'is answered') {
      answered.add(event.call);
      if (isStill.has(processOf.get(event.call) ?? -1)) unread.add(event.call);
    } else if (event.what === 'stands still') isStill.add(event.process);
    else if (event.what === 'loses the database') isCutOff.add(event.process);
    else if (event.what === 'has the database') isCutOff.delete(event.process);
    else if (event.what === 'may lose its lease') mayLoseLease.add(event.process);
    else if (event.what === 'starts') mayLoseLease.delete(event.process);
    else if (event.what === 'nodes are apart' || event.what === 'nodes are together')
      flags.areApart = event.what === 'nodes are apart';
    else if (event.what === 'the database may crash' || event.what === 'the database is back')
      flags.mayCrash = event.what === 'the database may crash';
    // What has gone on may renew its lease; where that is over, it was when it stood still.
    else if (event.what === 'goes on') {
      mayLoseLease.delete(event.process);
      isStill.delete(event.process);
    }
    return { event, course };
  });
}

/** A log whose clients and processes have the numbers from 0 on. A client that is gone gives its number to a later one. */
export function numberLog(log: readonly LogEvent[]): {
  readonly events: readonly LogEvent[];
  readonly clients: number;
  readonly processes: number;
} {
  const clients = new Map<number, number>();
  const processes = new Map<number, number>();
  let most = 0;
  const processAt = (process: number): number => {
    const known = processes.get(process) ?? processes.size;
    processes.set(process, known);
    return known;
  };
  const clientAt = (client: number): number => {
    const known = clients.get(client);
    if (known !== undefined) return known;
    const taken = new Set(clients.values());
    let free = 0;
    while (taken.has(free)) free++;
    clients.set(client, free);
    most = Math.max(most, free + 1);
    return free;
  };
  const events = log.map((event) => {
    let numbered: LogEvent = event;
    if ('process' in numbered) numbered = { ...numbered, process: processAt(numbered.process) };
    if ('client' in numbered) numbered = { ...numbered, client: clientAt(numbered.client) };
    if (event.what === 'is gone') clients.delete(event.client);
    return numbered;
  });
  return { events, clients: most, processes: processes.size };
}
