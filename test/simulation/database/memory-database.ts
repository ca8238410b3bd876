import type { Limits } from '../../../src/domain/limits/limits.ts';
import { createMemorySlots } from '../../support/memory-slot-store.ts';
import type { MemorySlots } from '../../support/memory-slot-store.ts';
import { MemoryBooks } from './memory-books.ts';
import { MemoryLeases } from './memory-leases.ts';

/** By how much the clock of the database differs from the virtual time, in milliseconds. */
const databaseOffsetMs = 1_800_000_000_000;

/** The database that all nodes share: every step on it is made at once, in the order in which the steps arrive. */
export class MemoryDatabase {
  readonly leases: MemoryLeases;
  readonly books: MemoryBooks;
  readonly slots: MemorySlots;
  /** The own limits of each key. */
  readonly limits = new Map<string, Limits>();
  /** Why no step arrives; `null` when they do. */
  away: 'refused' | 'silent' | null = null;
  readonly nowMs: () => number;

  constructor(virtualMs: () => number) {
    this.nowMs = () => databaseOffsetMs + virtualMs();
    this.leases = new MemoryLeases(this.nowMs);
    const isEnded = (owner: string): boolean => !this.leases.has(owner);
    this.books = new MemoryBooks((owner) => this.leases.has(owner));
    this.slots = createMemorySlots(
      this.nowMs,
      (owner) => this.leases.isHeld(owner),
      isEnded,
      (keyId) => this.limits.get(keyId) ?? null,
    );
  }
}
