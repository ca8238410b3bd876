import type { BudgetTerms, CountedBudget, StoredPeriod } from '../../../src/domain/budgets/budget.ts';
import type { OpenedRecord, Reservation, SettledRecord } from '../../../src/domain/money/consumption.ts';
import { requestKeyOf } from '../../../src/storage/records/request-key.ts';

/** An account, in nano-USD. */
export interface Account {
  balance: number;
  held: number;
  spent: number;
}

/** A request whose record is begun and not ended. */
export interface OpenRequest {
  readonly owner: string;
  readonly keyId: string;
  readonly requestId: string;
  readonly createdAtMs: number;
  readonly hold: number;
  /** The budgets and the periods in which it counts. */
  readonly budgets: readonly { readonly id: string; readonly startMs: number }[];
}

/** The current period of a budget. */
type Period = { -readonly [Name in keyof StoredPeriod]: StoredPeriod[Name] };

/** A record that was ended: by its settlement, or closed as lost. */
interface EndedRecord {
  readonly keyId: string;
  readonly outcome: string;
  readonly charge: number;
  readonly isSettled: boolean;
}

/** A change of a balance. */
interface Posting {
  readonly keyId: string;
  readonly kind: 'credit' | 'charge';
  readonly delta: number;
  readonly requestId: string | null;
}

/** Accounts, open requests, records and the ledger in plain lists: what the units on them must do. */
export class MemoryBooks {
  readonly accounts = new Map<string, Account>();
  readonly budgets = new Map<string, Period>();
  readonly open = new Map<string, OpenRequest>();
  readonly records = new Map<string, EndedRecord>();
  readonly ledger: Posting[] = [];
  readonly #hasLease: (owner: string) => boolean;

  constructor(hasLease: (owner: string) => boolean) {
    this.#hasLease = hasLease;
  }

  account(keyId: string): Account {
    let account = this.accounts.get(keyId);
    if (account === undefined) {
      account = { balance: 0, held: 0, spent: 0 };
      this.accounts.set(keyId, account);
    }
    return account;
  }

  credit(keyId: string, nanos: number): void {
    this.account(keyId).balance += nanos;
    this.ledger.push({ keyId, kind: 'credit', delta: nanos, requestId: null });
  }

  /** Begins a record and sets its hold aside, or does neither. */
  begin(owner: string, { keyId, requestId, hold, budgets: wanted = [] }: OpenedRecord): Reservation {
    const account = this.account(keyId);
    const rows = wanted.map((terms) => this.#periodOf(terms));
    const before = wanted.length === 0 ? {} : { periods: rows.map((row) => ({ ...row })) };
    const rooms = wanted.map(
      ({ limitNanos }, at) => limitNanos - (rows[at]?.spentNanos ?? 0) - (rows[at]?.heldNanos ?? 0),
    );
    const room = Math.min(account.balance, ...rooms);
    if (hold.nanos > 0 && room < hold.leastNanos)
      return { granted: false, balanceNanos: account.balance, heldNanos: account.held, ...before };
    const taken = Math.min(hold.nanos, Math.max(0, room));
    account.balance -= taken;
    account.held += taken;
    for (const row of rows) row.heldNanos += taken;
    const budgets = wanted.map(({ id }, at) => ({ id, startMs: rows[at]?.startMs ?? 0 }));
    const { createdAtMs } = requestKeyOf(requestId);
    this.open.set(requestId, { owner, keyId, requestId, createdAtMs, hold: taken, budgets });
    return { granted: true, holdNanos: taken, balanceNanos: account.balance, ...before };
  }

  /** The period of a budget: that of a terms, unless there is a later one. */
  #periodOf({ id, startMs, endMs }: Pick<BudgetTerms, 'id' | 'startMs' | 'endMs'>): Period {
    let row = this.budgets.get(id);
    if (row === undefined || row.startMs < startMs) {
      row = { startMs, endMs, spentNanos: 0, heldNanos: 0, level: 0 };
      this.budgets.set(id, row);
    }
    return row;
  }

  /** Counts a charge in the period in which its request began, unless it is over. */
  #count(budget: CountedBudget, charge: number): void {
    const row = this.#periodOf(budget);
    if (row.startMs > budget.startMs) return;
    row.spentNanos += charge;
    const reached = budget.levels.filter(({ nanos }) => nanos <= row.spentNanos).map(({ part }) => part);
    row.level = Math.max(row.level, ...reached);
  }

  /** Settles a request once: in time, after it was closed as lost, or without a beginning. */
  settle({ requestId, begun, outcome, chargeNanos }: SettledRecord): void {
    const open = this.open.get(requestId);
    const record = this.records.get(requestId);
    const keyId = open?.keyId ?? record?.keyId ?? begun.keyId;
    if (record?.isSettled === true) throw new Error(`no open record of ${requestId}`);
    this.#close(requestId);
    const account = this.account(keyId);
    account.balance -= chargeNanos;
    account.spent += chargeNanos;
    for (const budget of begun.budgets ?? []) this.#count(budget, chargeNanos);
    this.records.set(requestId, { keyId, outcome, charge: chargeNanos, isSettled: true });
    if (chargeNanos > 0) this.ledger.push({ keyId, kind: 'charge', delta: -chargeNanos, requestId });
  }

  isSettled({ requestId, outcome, chargeNanos }: SettledRecord): boolean {
    const record = this.records.get(requestId);
    return record?.outcome === outcome && record.charge === chargeNanos;
  }

  /** The requests that an owner may close: those of others without a lease, and its own that are old enough. */
  closable(owner: string, ownBeforeMs: number, ownAfterMs: number): readonly string[] {
    const isClosable = (open: OpenRequest): boolean =>
      open.owner === owner
        ? open.createdAtMs < ownBeforeMs || open.createdAtMs > ownAfterMs
        : !this.#hasLease(open.owner);
    return [...this.open.values()].filter(isClosable).map(({ requestId }) => requestId);
  }

  /** Closes as lost those of some requests that an owner may close; returns which. */
  closeSome(owner: string, requestIds: readonly string[]): readonly OpenRequest[] {
    return this.#closeAsLost(
      (open) => requestIds.includes(open.requestId) && (open.owner === owner || !this.#hasLease(open.owner)),
    );
  }

  /** Closes as lost the requests of owners without a lease; returns which. */
  closeLost(): readonly OpenRequest[] {
    return this.#closeAsLost((open) => !this.#hasLease(open.owner));
  }

  #closeAsLost(isClosed: (open: OpenRequest) => boolean): readonly OpenRequest[] {
    const closed = [...this.open.values()].filter(isClosed);
    for (const { requestId, keyId } of closed) {
      this.#close(requestId);
      if (!this.records.has(requestId))
        this.records.set(requestId, { keyId, outcome: 'lost', charge: 0, isSettled: false });
    }
    return closed;
  }

  /** Gives back what an open request holds. */
  #close(requestId: string): void {
    const open = this.open.get(requestId);
    if (open === undefined) return;
    this.open.delete(requestId);
    const account = this.account(open.keyId);
    account.held -= open.hold;
    account.balance += open.hold;
    for (const { id, startMs } of open.budgets) {
      const row = this.budgets.get(id);
      if (row?.startMs === startMs) row.heldNanos -= open.hold;
    }
  }
}
