/** A deliberate fault in the source, and what must find it. */
export interface Mutation {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The test files that must fail, and what else vitest is called with; or a script with its arguments. */
  readonly tests: readonly string[];
  readonly script?: readonly string[];
}
