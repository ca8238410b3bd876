/**
 * What may go wrong: a process is killed, stands still, or loses the database for a while; an upstream fails; the database
 * crashes.
 */
export type Failure = 'kill' | 'stop' | 'loss' | 'upstream' | 'crash';

/** How much there is of everything in a search. */
export interface Size {
  readonly claims: number;
  readonly clients: number;
  readonly processes: number;
  /** How much goes wrong at the most: in all, and of each kind. */
  readonly failures: number;
  readonly most: Readonly<Record<Failure, number>>;
  /** How many of the clients ask for something else under the same key. */
  readonly others: number;
}

/** The row of a claim. Its owner is a process in one of its leases. */
export interface Row {
  readonly stands: 'running' | 'free' | 'ended';
  readonly process: number;
  readonly lease: number;
  readonly run: number;
  /** What was asked: 1 of those who ask for something else. */
  readonly body: number;
}

/** A claim in the database, with what is known of it outside: how often it was run, and what was charged. */
export interface Claim {
  row: Row | null;
  /** What a crash of the database leaves of the row. */
  onDisk: Row | null;
  runs: number;
  charges: number;
  /** The run that was charged last, and whether its text was complete. */
  charged: number;
  wasComplete: boolean;
  /** The runs that came to nothing: their process was killed or taken for dead, or they cost nothing. */
  readonly lost: number[];
}

/** The answer of one run, in the memory of the process that made its upstream call. */
export interface Answer {
  /** 0 as long as its claim is not written. */
  run: number;
  readonly body: number;
  /**
   * Of an `asked` one the process does not know yet whether its claim is written; the upstream is called then. `complete` and
   * `cut` ones are to be settled; a `settled` one is kept to be replayed.
   */
  stands: 'asked' | 'running' | 'complete' | 'cut' | 'settled';
  /** Whether the time is running within which a client may come back. */
  inGrace: boolean;
}

export interface Process {
  /** `alone`: without the database. */
  life: 'up' | 'alone' | 'stopped' | 'dead';
  /** The number of its lease. */
  lease: number;
  /** `over`: not renewed in time. `ended`: ended by another process, which freed what was held under it. */
  leaseIs: 'held' | 'over' | 'ended';
  /** What it has of each claim. */
  readonly answers: (Answer | null)[];
  /** The settlement of each claim that it has kept on its disk: of a run that came to its end while the database was away. */
  readonly kept: (Kept | null)[];
}

/** A settlement that is to be made once the database is back, also after its process has ended. */
export interface Kept {
  readonly run: number;
  readonly isComplete: boolean;
}

/** A client that asks one thing, again and again until it has it or is told that it can't have it. */
export interface Client {
  readonly body: number;
  /**
   * `told`: of the charge of an answer that is gone. `refused`: another request has the key. `interrupted`: its answer was
   * stopped while it listened.
   */
  is: 'away' | 'listening' | 'served' | 'told' | 'refused' | 'interrupted';
  /** What it asks for, once it has asked; -1 before. */
  claim: number;
  /**
   * Where it listens, and to which run; the run that it was served; of one that was told, the run whose text was there; of one
   * that was refused, what the other request asked. -1 where that says nothing.
   */
  process: number;
  run: number;
}

export interface State {
  readonly claims: Claim[];
  readonly processes: Process[];
  readonly clients: Client[];
  /** How much may still go wrong, in all and of each kind. */
  failures: number;
  readonly most: Record<Failure, number>;
}

export function startOf({ claims, clients, processes, others, failures, most }: Size): State {
  const some = <Item>(count: number, make: (at: number) => Item): Item[] =>
    Array.from({ length: count }, (_, at) => make(at));
  return {
    claims: some(claims, () => ({
      row: null,
      onDisk: null,
      runs: 0,
      charges: 0,
      charged: 0,
      wasComplete: false,
      lost: [],
    })),
    processes: some(processes, () => ({
      life: 'up',
      lease: 0,
      leaseIs: 'held',
      answers: some(claims, () => null),
      kept: some(claims, () => null),
    })),
    clients: some(clients, (at) => ({
      body: at < clients - others ? 0 : 1,
      is: 'away',
      claim: -1,
      process: -1,
      run: -1,
    })),
    failures,
    most,
  };
}

/** Whether a process does anything. */
export function works({ life }: Process): boolean {
  return life === 'up' || life === 'alone';
}

/** The clients that listen to a claim's answer in a process. */
export function listenersOf({ clients }: State, process: number, claim: number): readonly Client[] {
  return clients.filter((one) => one.is === 'listening' && one.process === process && one.claim === claim);
}

/** A copy in which everything may be changed but rows, which are replaced. */
export function copyOf({ claims, processes, clients, failures, most }: State): State {
  return {
    claims: claims.map((claim) => ({ ...claim, lost: [...claim.lost] })),
    processes: processes.map((process) => ({
      ...process,
      answers: process.answers.map((answer) => (answer === null ? null : { ...answer })),
      kept: [...process.kept],
    })),
    clients: clients.map((client) => ({ ...client })),
    failures,
    most: { ...most },
  };
}

/**
 * The same text for states that differ only in which claim, process or client is which: of all ways to number them, the one
 * whose text comes first.
 */
export function nameOf(state: State): string {
  let first: string | null = null;
  for (const claims of ordersOf(state.claims.length))
    for (const processes of ordersOf(state.processes.length)) {
      const name = write(state, claims, processes);
      if (first === null || name < first) first = name;
    }
  return first ?? '';
}

function write(state: State, claims: readonly number[], processes: readonly number[]): string {
  const claimAt = (claim: number): number => (claim < 0 ? claim : claims.indexOf(claim));
  const processAt = (process: number): number => (process < 0 ? process : processes.indexOf(process));
  const row = (one: Row | null): string =>
    one === null ? '-' : `${one.stands}${processAt(one.process)}.${one.lease}.${one.run}.${one.body}`;
  const ofClaims = claims.map((at) => {
    const claim = state.claims[at];
    if (claim === undefined) return '';
    const { runs, charges, charged, wasComplete, lost } = claim;
    return `${row(claim.row)}/${row(claim.onDisk)}/${runs}.${charges}.${charged}.${wasComplete}${lost.toSorted((a, b) => a - b).join()}`;
  });
  const ofProcesses = processes.map((at) => {
    const process = state.processes[at];
    if (process === undefined) return '';
    const answers = claims.map((claim) => {
      const answer = process.answers[claim] ?? null;
      return answer === null ? '-' : `${answer.run}.${answer.body}${answer.stands}${answer.inGrace}`;
    });
    const kept = claims.map((claim) => {
      const one = process.kept[claim] ?? null;
      return one === null ? '' : `${one.run}${one.isComplete}`;
    });
    return `${process.life}${process.lease}${process.leaseIs}:${answers.join()}:${kept.join()}`;
  });
  const ofClients = state.clients
    .map(({ body, is, claim, process, run }) => `${body}${is}${claimAt(claim)}.${processAt(process)}.${run}`)
    .toSorted();
  return [ofClaims, ofProcesses, ofClients, [state.failures, ...Object.values(state.most)]]
    .map((part) => part.join(';'))
    .join('|');
}

const knownOrders = new Map<number, readonly (readonly number[])[]>();

/** All orders of the numbers below a count. */
function ordersOf(count: number): readonly (readonly number[])[] {
  const known = knownOrders.get(count);
  if (known !== undefined) return known;
  const orders =
    count === 0
      ? [[]]
      : ordersOf(count - 1).flatMap((order) =>
          Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]),
        );
  knownOrders.set(count, orders);
  return orders;
}
