import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import {
  isAnything,
  isArray,
  isBoolean,
  isIntegerFrom,
  isNumberBetween,
  isObject,
  isPlainObject,
  isString,
  missingParameter,
} from './checks.ts';
import type { Check } from './checks.ts';
import type { Protocol } from './text.ts';

/**
 * What becomes of a top-level parameter once its type is right:
 * `forward` takes part in the request, `strip` is taken out and named in `x-textgate-stripped`, `refuse` is
 * a 400 unless the value is neutral, that is: asks for nothing that the service lacks.
 */
type Treatment =
  | { readonly kind: 'forward'; readonly required?: true }
  | { readonly kind: 'strip' }
  | {
      readonly kind: 'refuse';
      readonly code: 'unsupported_parameter' | 'unsupported_value';
      readonly neutral: (value: unknown) => boolean;
      readonly advice: string;
    };

/** One row of the registry. */
interface Parameter {
  readonly name: string;
  readonly protocols: readonly Protocol[];
  readonly check: Check;
  readonly treatment: Treatment;
}

const both: readonly Protocol[] = ['chat', 'responses'];
const forward: Treatment = { kind: 'forward' };
const required: Treatment = { kind: 'forward', required: true };
const strip: Treatment = { kind: 'strip' };

const noTools = 'Tools are not available: this service generates text only.';
const noState = 'Send the full conversation as text with every request: this service keeps none.';
const textOnly = "This service generates plain text only; leave it out or use 'text'.";

/** Every top-level parameter that the service knows, and its fate. An unknown one is refused. */
export const parameters: readonly Parameter[] = [
  { name: 'model', protocols: both, check: isString, treatment: required },
  { name: 'messages', protocols: ['chat'], check: isArray, treatment: required },
  { name: 'input', protocols: ['responses'], check: isAnything, treatment: required },
  { name: 'instructions', protocols: ['responses'], check: isString, treatment: forward },
  { name: 'stream', protocols: both, check: isBoolean, treatment: forward },
  { name: 'stream_options', protocols: ['chat'], check: isObject, treatment: forward },
  { name: 'max_tokens', protocols: ['chat'], check: isIntegerFrom(1), treatment: forward },
  { name: 'max_completion_tokens', protocols: ['chat'], check: isIntegerFrom(1), treatment: forward },
  { name: 'max_output_tokens', protocols: ['responses'], check: isIntegerFrom(1), treatment: forward },
  { name: 'temperature', protocols: both, check: isNumberBetween(0, 2), treatment: strip },
  { name: 'top_p', protocols: both, check: isNumberBetween(0, 1), treatment: strip },
  { name: 'frequency_penalty', protocols: both, check: isNumberBetween(-2, 2), treatment: strip },
  { name: 'presence_penalty', protocols: both, check: isNumberBetween(-2, 2), treatment: strip },
  { name: 'tools', protocols: both, check: isArray, treatment: refused(isEmptyList, noTools) },
  { name: 'functions', protocols: ['chat'], check: isArray, treatment: refused(isEmptyList, noTools) },
  { name: 'tool_choice', protocols: both, check: isAnything, treatment: refused(isAutoOrNone, noTools) },
  {
    name: 'function_call',
    protocols: ['chat'],
    check: isAnything,
    treatment: refused(isAutoOrNone, noTools),
  },
  { name: 'previous_response_id', protocols: both, check: isAnything, treatment: refused(never, noState) },
  { name: 'conversation', protocols: both, check: isAnything, treatment: refused(never, noState) },
  { name: 'audio', protocols: ['chat'], check: isAnything, treatment: refused(never, textOnly) },
  {
    name: 'modalities',
    protocols: ['chat'],
    check: isArray,
    treatment: { kind: 'refuse', code: 'unsupported_value', neutral: isTextOnly, advice: textOnly },
  },
];

const byProtocol: Readonly<Record<Protocol, ReadonlyMap<string, Parameter>>> = {
  chat: indexFor('chat'),
  responses: indexFor('responses'),
};

/** The parameters that a body really sets, and the names of those taken out. */
export interface ReadParameters {
  readonly values: Readonly<Record<string, unknown>>;
  readonly stripped: readonly string[];
}

/**
 * Holds a request body against the registry. `null` equals absent on every optional parameter.
 * Of several faults the first in document order is reported, missing parameters last.
 */
export function readParameters(protocol: Protocol, body: unknown): ReadParameters | Refusal {
  if (!isPlainObject(body))
    return refuse('invalid_type', 'The request body must be a JSON object with a model and its text.');
  const values: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const stripped: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    const parameter = byProtocol[protocol].get(name);
    if (parameter === undefined) return unknownParameter(name);
    const isRequired = parameter.treatment.kind === 'forward' && parameter.treatment.required === true;
    if (value === null && !isRequired) continue;
    const fault = parameter.check(value, name) ?? treatmentFault(parameter, value);
    if (fault !== null) return fault;
    if (parameter.treatment.kind === 'forward') values[name] = value;
    else stripped.push(name);
  }
  for (const { name, treatment } of byProtocol[protocol].values()) {
    if (treatment.kind === 'forward' && treatment.required && values[name] === undefined)
      return missingParameter(name);
  }
  return { values, stripped };
}

function treatmentFault(parameter: Parameter, value: unknown): Refusal | null {
  const { name, treatment } = parameter;
  if (treatment.kind !== 'refuse' || treatment.neutral(value)) return null;
  const fault = treatment.code === 'unsupported_value' ? 'value' : 'parameter';
  return refuse(treatment.code, `Unsupported ${fault}: '${name}'. ${treatment.advice}`, { param: name });
}

function unknownParameter(name: string): Refusal {
  const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
  return refuse('unknown_parameter', `Unknown parameter: '${shown}'. Remove it from the request.`, {
    param: shown,
  });
}

function refused(neutral: (value: unknown) => boolean, advice: string): Treatment {
  return { kind: 'refuse', code: 'unsupported_parameter', neutral, advice };
}

function indexFor(protocol: Protocol): ReadonlyMap<string, Parameter> {
  const rows = parameters.filter((parameter) => parameter.protocols.includes(protocol));
  return new Map(rows.map((parameter) => [parameter.name, parameter]));
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isAutoOrNone(value: unknown): boolean {
  return value === 'auto' || value === 'none';
}

function isTextOnly(value: unknown): boolean {
  return Array.isArray(value) && value.length === 1 && value[0] === 'text';
}

function never(): boolean {
  return false;
}
