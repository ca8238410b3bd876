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

/** Where a dialect has the input that was read from a cache or written to it: in the count of the input, or beside it. */
export type CachePlace = 'inside' | 'beside';

/** What the counts of a report mean, in tokens. */
export interface UsageReading {
  /** All input; `null` if it was not reported. */
  readonly input: number | null;
  readonly cached: number;
  readonly written: number;
  /** All output; `null` if it was not reported. */
  readonly output: number | null;
  readonly reasoning: number;
  /** By how many tokens the total exceeds all counts, with nothing to explain it. */
  readonly unexplained: number;
}

/**
 * Reads the counts in the one way in which they add up:
 * - cached and written input is where the dialect has it, unless the total shows that one or both stand beside the
 *   prompt, or they are more than the prompt, so that they can only stand beside it;
 * - reasoning is a part of the completion, unless the total shows that it stands beside it.
 * A total that is no more than prompt and completion says nothing: some upstreams add up just these two. What no reading
 * explains is no output: it may as well be input.
 */
export function readUsage(counts: ReportedCounts, usual: CachePlace): UsageReading {
  const prompt = sum(counts.prompt, counts.tools);
  const completion = sum(counts.completion, counts.thoughts);
  const cached = counts.cached ?? 0;
  const written = counts.written ?? 0;
  const loose = counts.reasoning ?? 0;
  const all = cached + written;
  const likely = prompt !== null && (usual === 'beside' || all > prompt) ? all : 0;
  const excess = Math.max(0, (counts.total ?? 0) - (prompt ?? Infinity) - (completion ?? Infinity));
  const usually = { beside: likely, raise: 0 };
  const found =
    excess === 0 ? usually : explain(excess, { prompt: prompt ?? 0, cached, written, loose, likely });
  const { beside, raise } = found ?? usually;
  return {
    input: prompt === null ? null : prompt + beside,
    cached,
    written,
    output: completion === null ? null : completion + raise,
    reasoning: Math.max(loose, counts.thoughts ?? 0),
    unexplained: found === null ? excess : 0,
  };
}

interface Parts {
  readonly prompt: number;
  readonly cached: number;
  readonly written: number;
  readonly loose: number;
  readonly likely: number;
}

/** Which input and which reasoning beside prompt and completion make up the excess of the total; `null` if none does. */
function explain(
  excess: number,
  { prompt, cached, written, loose, likely }: Parts,
): { readonly beside: number; readonly raise: number } | null {
  const all = cached + written;
  const places = [likely, all, cached, written, 0].filter((beside) => all - beside <= prompt);
  for (const raise of [0, loose]) {
    const beside = places.find((place) => place + raise === excess);
    if (beside !== undefined) return { beside, raise };
  }
  // The completion has a part of the reasoning.
  const rest = excess - likely;
  return rest > 0 && rest < loose ? { beside: likely, raise: rest } : null;
}

function sum(whole: number | null, part: number | null): number | null {
  return part === null ? whole : (whole ?? 0) + part;
}
