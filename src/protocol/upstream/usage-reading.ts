import type { ReportedCounts } from './token-counts.ts';

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
