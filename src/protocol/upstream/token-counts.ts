import { isPlainObject } from '../../shared/parse-json.ts';

/**
 * The counts of a usage object by their meaning, in tokens; `null` for a missing one. Whether cached and written input and
 * reasoning are parts of the prompt and the completion or stand beside them is for `readUsage` to find out.
 */
export interface ReportedCounts {
  readonly prompt: number | null;
  /** The results of the provider's own tools, which the prompt lacks (Gemini). */
  readonly tools: number | null;
  readonly completion: number | null;
  /** Reasoning that the completion lacks (Gemini). */
  readonly thoughts: number | null;
  readonly total: number | null;
  readonly cached: number | null;
  readonly written: number | null;
  readonly reasoning: number | null;
}

/** How a value of a usage object is read as a count; `null` if it is none. */
type CountOf = (value: unknown) => number | null;

/** The names of each count as paths into the usage object, of all dialects: some upstreams use those of another one. */
const names: Readonly<Record<keyof ReportedCounts, readonly (readonly string[])[]>> = {
  prompt: [['prompt_tokens'], ['input_tokens'], ['promptTokenCount']],
  tools: [['toolUsePromptTokenCount']],
  completion: [['completion_tokens'], ['output_tokens'], ['candidatesTokenCount']],
  thoughts: [['thoughtsTokenCount']],
  total: [['total_tokens'], ['totalTokenCount']],
  cached: [
    ['prompt_tokens_details', 'cached_tokens'],
    ['prompt_tokens_details', 'cache_read_input_tokens'],
    ['input_tokens_details', 'cached_tokens'],
    ['prompt_cache_hit_tokens'],
    ['cached_tokens'],
    ['cache_read_input_tokens'],
    ['cachedContentTokenCount'],
  ],
  written: [
    ['prompt_tokens_details', 'cache_write_tokens'],
    ['prompt_tokens_details', 'cache_creation_input_tokens'],
    ['input_tokens_details', 'cache_write_tokens'],
    ['cache_creation_input_tokens'],
  ],
  reasoning: [
    ['completion_tokens_details', 'reasoning_tokens'],
    ['output_tokens_details', 'reasoning_tokens'],
    ['output_tokens_details', 'thinking_tokens'],
    ['reasoning_tokens'],
  ],
};

/** Reads the counts of a usage object, by whichever names it has. */
export function readCounts(usage: Readonly<Record<string, unknown>>): ReportedCounts {
  return {
    prompt: find(usage, names.prompt),
    tools: find(usage, names.tools),
    completion: find(usage, names.completion),
    thoughts: find(usage, names.thoughts),
    total: find(usage, names.total),
    cached: find(usage, names.cached, writtenCount),
    written: find(usage, names.written) ?? sumOfValues(usage['cache_creation']),
    reasoning: find(usage, names.reasoning),
  };
}

/** The first count above 0 that is found, since upstreams write zeros for what they did not count; `null` without any. */
function find(
  usage: Readonly<Record<string, unknown>>,
  ways: readonly (readonly string[])[],
  countOf: CountOf = count,
): number | null {
  let found: number | null = null;
  for (const way of ways) {
    const counted = countOf(valueAt(usage, way));
    if (counted !== null && counted > 0) return counted;
    found ??= counted;
  }
  return found;
}

function valueAt(usage: Readonly<Record<string, unknown>>, [name = '', part]: readonly string[]): unknown {
  const value = usage[name];
  if (part === undefined) return value;
  return isPlainObject(value) ? value[part] : null;
}

/** A count that may be written as text: cached input is a discount, which a client must not lose by that. */
function writtenCount(value: unknown): number | null {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : count(value);
}

/** Anthropic's writes to the cache, by how long they are kept. */
function sumOfValues(counts: unknown): number | null {
  if (!isPlainObject(counts)) return null;
  const found = Object.values(counts)
    .map(count)
    .filter((tokens) => tokens !== null);
  return found.length === 0 ? null : found.reduce((all, tokens) => all + tokens, 0);
}

/** A token count; `null` for strings, fractions, negative numbers and integers beyond exact representation. */
function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}
