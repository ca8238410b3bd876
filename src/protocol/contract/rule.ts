import type { ValueType } from './value-type.ts';

/**
 * What becomes of a field whose value is of the right type.
 * - `forward`: it takes part in the request.
 * - `strip`: it is taken out and named in `x-textgate-stripped`.
 * - `echo`: it is taken out, and repeated in the Responses object.
 * - `sampling`: taken out, or in strict mode refused unless it is one of the defaults that clients send.
 * - `refuse`: a 400 unless the value is neutral, that is: asks for nothing that the service lacks. `at` is the
 *   part of the value that the refusal points to.
 * - `misplaced`: not a field of this endpoint; the refusal says where it belongs.
 */
export type FieldPolicy =
  | { readonly kind: 'forward'; readonly required?: true }
  | { readonly kind: 'strip' }
  | { readonly kind: 'echo' }
  | { readonly kind: 'sampling'; readonly defaults: readonly number[] }
  | {
      readonly kind: 'refuse';
      readonly code: 'unsupported_parameter' | 'unsupported_value';
      readonly neutral: readonly unknown[];
      readonly advice: string;
      readonly at?: string;
    }
  | { readonly kind: 'misplaced'; readonly advice: string };

/** One row of the contract: a field, what it may hold, what becomes of it, and why. */
export interface Rule {
  readonly name: string;
  readonly type: ValueType;
  readonly policy: FieldPolicy;
  /** One line for the table in docs/compatibility.md. */
  readonly why: string;
}

export const forward: FieldPolicy = { kind: 'forward' };
export const required: FieldPolicy = { kind: 'forward', required: true };
export const strip: FieldPolicy = { kind: 'strip' };
export const echo: FieldPolicy = { kind: 'echo' };

/** Refused by its name, unless it holds one of the neutral values. */
export function refusedUnless(neutral: readonly unknown[], advice: string): FieldPolicy {
  return { kind: 'refuse', code: 'unsupported_parameter', neutral, advice };
}

/** Refused for its value, unless it is one of the neutral ones. */
export function onlyNeutral(neutral: readonly unknown[], advice: string, at?: string): FieldPolicy {
  return { kind: 'refuse', code: 'unsupported_value', neutral, advice, ...(at === undefined ? {} : { at }) };
}

/** Refused whatever it holds. */
export function refused(advice: string): FieldPolicy {
  return refusedUnless([], advice);
}

/** Rows that share their type, their policy and their reason. */
export function rules(names: string, type: ValueType, policy: FieldPolicy, why: string): readonly Rule[] {
  return names.split(' ').map((name) => ({ name, type, policy, why }));
}
