/** A rule that a history broke. */
export class Violation extends Error {
  override readonly name = 'Violation';
}
