import { expect } from 'vitest';

// For functions and classes that check what a test makes them do: `expect` itself stands in tests alone.

/** Fails the test unless two values are the same. */
export function expectEqual(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected);
}

/** Fails the test unless a value has what is expected of it; it may have more. */
export function expectMatch(found: unknown, expected: object): void {
  expect(found).toMatchObject(expected);
}

/** Fails the test if a number is above another one. */
export function expectAtMost(found: number, most: number): void {
  expect(found).toBeLessThanOrEqual(most);
}
