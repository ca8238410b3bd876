import { anything } from './value-type.ts';
import type { ValueType } from './value-type.ts';

/**
 * What happens to a field whose value has the right type.
 * - `forward`: used for the request.
 * - `strip`: dropped, and named in `x-textgate-stripped`; with `isKept`, the gateway itself uses the value.
 * - `echo`: dropped and named like `strip`, and repeated in the Responses object.
 * - `sampling`: dropped; in strict mode refused unless it is one of the defaults that clients send.
 * - `refuse`: a 400 unless the value is neutral, which means that it requests nothing that the service lacks.
 * - `misplaced`: a field of another place; the refusal says where it belongs.
 */
export type FieldPolicy =
  | { readonly kind: 'forward'; readonly required?: true }
  | { readonly kind: 'strip'; readonly isKept?: true }
  | { readonly kind: 'echo' }
  | { readonly kind: 'sampling'; readonly defaults: readonly number[] }
  | {
      readonly kind: 'refuse';
      readonly code: 'unsupported_parameter' | 'unsupported_value';
      readonly neutral: readonly unknown[];
      readonly advice: string;
    }
  | { readonly kind: 'misplaced'; readonly advice: string };

/** One row of the contract: a field, its value type, its policy, and the reason. */
export interface Rule {
  readonly name: string;
  readonly type: ValueType;
  readonly policy: FieldPolicy;
  /** One line for the table in docs/callers/compatibility.md. */
  readonly why: string;
}

export const forward: FieldPolicy = { kind: 'forward' };
export const required: FieldPolicy = { kind: 'forward', required: true };
export const strip: FieldPolicy = { kind: 'strip' };
export const keepOnly: FieldPolicy = { kind: 'strip', isKept: true };
export const echo: FieldPolicy = { kind: 'echo' };

/** Refuses a field as an unsupported parameter, unless its value is neutral. The refusal adds to `advice` to leave it out. */
export function refusedUnless(neutral: readonly unknown[], advice: string): FieldPolicy {
  return { kind: 'refuse', code: 'unsupported_parameter', neutral, advice };
}

/** Refuses a field's value as unsupported, unless it is neutral. */
export function onlyNeutral(neutral: readonly unknown[], advice: string): FieldPolicy {
  return { kind: 'refuse', code: 'unsupported_value', neutral, advice };
}

/** Refuses a field with any value. */
export function refused(advice: string): FieldPolicy {
  return refusedUnless([], advice);
}

/** Refuses a field that this endpoint takes in another place, or under another name. */
export function misplaced(advice: string): FieldPolicy {
  return { kind: 'misplaced', advice };
}

/** Rules that share their type, their policy and their reason, by their names, which blanks divide. */
type Row = readonly [names: string, type: ValueType, policy: FieldPolicy, why: string];

/** A table of the contract, or a part of one. */
export function rules(...rows: readonly Row[]): readonly Rule[] {
  return rows.flatMap(([names, type, policy, why]) =>
    names.split(' ').map((name) => ({ name, type, policy, why })),
  );
}

/** Rules of fields that this endpoint takes in another place, with any value, and that share their reason. */
export function misplacedRules(
  why: string,
  ...rows: readonly (readonly [names: string, advice: string])[]
): readonly Rule[] {
  return rules(...rows.map(([names, advice]): Row => [names, anything, misplaced(advice), why]));
}
