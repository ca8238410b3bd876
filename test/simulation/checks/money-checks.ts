import type { OpenedRecord, Reservation, SettledRecord } from '../../../src/domain/money/consumption.ts';
import type { Counts } from '../counts.ts';
import type { MemoryBooks, OpenRequest } from '../database/memory-books.ts';
import { BudgetTallies } from './budget-tallies.ts';
import { Violation } from '../violation.ts';

/** What the arrivals of one key's units add up to. */
interface Tally {
  paidIn: number;
  held: number;
  spent: number;
}

/** A request whose settlement was handed in. */
interface Settling {
  readonly record: SettledRecord;
  /** Whether the request was told that it is settled, or kept to be. */
  isAnswered: boolean;
}

/** Adds up the units on money in the order of their arrival, and compares the books and every answer with it. */
export class MoneyChecks {
  readonly #books: MemoryBooks;
  readonly #counts: Counts;
  readonly #tallies = new Map<string, Tally>();
  readonly #holds = new Map<string, { readonly keyId: string; readonly hold: number }>();
  readonly #closed = new Set<string>();
  readonly #budgets: BudgetTallies;
  readonly #settling = new Map<string, Settling>();
  /** The charges in the order of their arrival. */
  readonly #charged: string[] = [];

  constructor(books: MemoryBooks, counts: Counts) {
    this.#books = books;
    this.#counts = counts;
    this.#budgets = new BudgetTallies(counts);
  }

  credited(keyId: string, nanos: number): void {
    this.#tally(keyId).paidIn += nanos;
  }

  /** A record was to be begun, and this was answered. */
  begun({ keyId, requestId, hold, budgets = [] }: OpenedRecord, reservation: Reservation): void {
    const room = Math.min(Number.POSITIVE_INFINITY, ...budgets.map((budget) => this.#budgets.asked(budget)));
    if (!reservation.granted && reservation.periods !== undefined && room < hold.leastNanos)
      this.#counts['refusals because a budget was used up']++;
    const tally = this.#tally(keyId);
    const balance = tally.paidIn - tally.held - tally.spent;
    const free = Math.min(balance, room);
    const isEnough = hold.nanos === 0 || free >= hold.leastNanos;
    if (reservation.granted !== isEnough)
      throw new Violation(`${requestId}: a balance of ${balance} and budgets of ${room} were judged wrongly`);
    if (!reservation.granted) return;
    const held = Math.min(hold.nanos, Math.max(0, free));
    if (reservation.holdNanos !== held || reservation.balanceNanos !== balance - held)
      throw new Violation(`${requestId}: holds ${reservation.holdNanos} of ${balance}`);
    tally.held += held;
    this.#holds.set(requestId, { keyId, hold: held });
    for (const { id } of budgets) this.#budgets.held(id, requestId, held);
  }

  /** A settlement is handed in. */
  settling(record: SettledRecord): void {
    this.#settling.set(record.requestId, { record, isAnswered: false });
  }

  /** A request was told that it is settled. */
  answered(requestId: string): void {
    const settling = this.#settling.get(requestId);
    if (settling !== undefined) settling.isAnswered = true;
  }

  /** A settlement was made. */
  settled({ requestId, chargeNanos, begun }: SettledRecord): void {
    if (this.#closed.has(requestId)) this.#counts['settlements that overtook a closing as lost']++;
    const keyId = this.#giveBack(requestId) ?? begun?.keyId ?? '';
    this.#tally(keyId).spent += chargeNanos;
    for (const budget of begun?.budgets ?? []) this.#budgets.charged(budget, chargeNanos);
    if (chargeNanos > 0) this.#charged.push(requestId);
  }

  /** Requests were closed as lost. */
  closed(requests: readonly OpenRequest[]): void {
    for (const { requestId } of requests) {
      this.#counts['records that were closed as lost']++;
      this.#giveBack(requestId);
      this.#closed.add(requestId);
    }
  }

  /** Compares the accounts with what arrived. */
  compare(): void {
    this.#compareBudgets();
    for (const [keyId, { paidIn, held, spent }] of this.#tallies) {
      const account = this.#books.account(keyId);
      if (account.held !== held || account.spent !== spent || account.balance !== paidIn - held - spent)
        throw new Violation(
          `${keyId}: the account ${JSON.stringify(account)} is not what arrived: ` +
            JSON.stringify({ paidIn, held, spent }),
        );
    }
  }

  /** Compares the books' budgets with what arrived. */
  #compareBudgets(): void {
    for (const [id, { startMs, spentNanos, heldNanos }] of this.#books.budgets) {
      const { startMs: expectedMs, spent, held } = this.#budgets.current(id);
      if (startMs !== expectedMs || spentNanos !== spent || heldNanos !== held)
        throw new Violation(
          `${id}: spent ${spentNanos} and holds ${heldNanos} from ${startMs} on, ` +
            `but ${spent} and ${held} arrived for ${expectedMs}`,
        );
    }
  }

  /** Checks the books when nothing is under way any more. */
  atTheEnd(): void {
    this.compare();
    const { open, ledger, records } = this.#books;
    if (open.size > 0) throw new Violation(`records stay open: ${[...open.keys()].join(', ')}`);
    for (const [keyId, { balance, held, spent }] of this.#books.accounts) {
      const rows = ledger.filter((row) => row.keyId === keyId);
      const booked = rows.reduce((sum, { delta }) => sum + delta, 0);
      if (held !== 0 || booked !== balance)
        throw new Violation(`${keyId}: holds ${held}, has ${balance} and spent ${spent}, booked ${booked}`);
    }
    const charges = ledger.filter(({ kind }) => kind === 'charge').map(({ requestId }) => requestId);
    if (charges.join() !== this.#charged.join())
      throw new Violation(`the ledger is not in the order of the settlements: ${charges.join()}`);
    for (const [requestId, { record, isAnswered }] of this.#settling) {
      const rows = ledger.filter((row) => row.requestId === requestId);
      const ended = records.get(requestId);
      if (isAnswered && ended?.isSettled !== true)
        throw new Violation(
          `${requestId} was told that it is settled, and is ${ended?.outcome ?? 'nowhere'}`,
        );
      const charged = rows.reduce((sum, { delta }) => sum - delta, 0);
      if (charged !== (ended?.isSettled === true ? record.chargeNanos : 0) || rows.length > 1)
        throw new Violation(`${requestId} costs ${record.chargeNanos}, and was charged ${charged}`);
    }
    const unasked = charges.filter((requestId) => !this.#settling.has(requestId ?? ''));
    if (unasked.length > 0) throw new Violation(`charged without a settlement: ${unasked.join()}`);
  }

  #tally(keyId: string): Tally {
    let tally = this.#tallies.get(keyId);
    if (tally === undefined) {
      tally = { paidIn: 0, held: 0, spent: 0 };
      this.#tallies.set(keyId, tally);
    }
    return tally;
  }

  /** Gives back what a request holds; returns its key, `null` if it holds nothing. */
  #giveBack(requestId: string): string | null {
    const open = this.#holds.get(requestId);
    if (open === undefined) return null;
    this.#holds.delete(requestId);
    this.#tally(open.keyId).held -= open.hold;
    this.#budgets.givenBack(requestId);
    return open.keyId;
  }
}
