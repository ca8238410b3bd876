import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { calendarOf, nextDay } from '../../../src/cli/reconcile/calendar.ts';
import { compareUsage } from '../../../src/cli/reconcile/compare.ts';
import type { Reconciliation } from '../../../src/cli/reconcile/compare.ts';
import { OurUsageReader } from '../../../src/cli/reconcile/our-usage.ts';
import { readExport } from '../../../src/cli/reconcile/read-export.ts';
import type { PresentedRecord } from '../../../src/http/present/record.ts';

/** One call that a provider has counted. */
export interface Call {
  readonly beganMs: number;
  readonly durationMs: number;
  readonly model: string;
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  /** Whether the provider counts it on the day on which it ended. */
  readonly countsAtEnd: boolean;
}

/** The sums of a provider for a day, a model and one of its keys. */
export interface Bucket {
  readonly day: string;
  readonly model: string;
  requests: number;
  input: number;
  cached: number;
  cacheWrite: number;
  output: number;
}

export const firstDay = '2030-01-30';
export const days = 4;
export const firstMs = Date.parse(firstDay);

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** A provider's own sums: two buckets for each day and model, as of two keys. */
export function bucketsOf(calls: readonly Call[]): readonly Bucket[] {
  const buckets = new Map<string, Bucket>();
  for (const [index, call] of calls.entries()) {
    const day = dayOf(call.beganMs + (call.countsAtEnd ? call.durationMs : 0));
    const name = `${day} ${call.model} ${index % 2}`;
    const bucket = buckets.get(name) ?? {
      day,
      model: call.model,
      requests: 0,
      input: 0,
      cached: 0,
      cacheWrite: 0,
      output: 0,
    };
    bucket.requests++;
    for (const part of ['input', 'cached', 'cacheWrite', 'output'] as const) bucket[part] += call[part];
    buckets.set(name, bucket);
  }
  return [...buckets.values()];
}

const csv = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map((cell) => `"${String(cell).replaceAll('"', '""')}"`).join(',')}\r\n`).join('');

const seconds = (day: string): number => Date.parse(day) / 1_000;

/** The exports that are made of sums. */
export const exportsOfBuckets: Readonly<Record<string, (buckets: readonly Bucket[]) => string>> = {
  'openai csv': (buckets) =>
    csv([
      [
        'start_time',
        'end_time',
        'project_id',
        'num_model_requests',
        'model',
        'input_tokens',
        'input_cached_tokens',
        'output_tokens',
      ],
      ...buckets.map((b) => [
        seconds(b.day),
        seconds(nextDay(b.day)),
        'p',
        b.requests,
        b.model,
        b.input,
        b.cached,
        b.output,
      ]),
    ]),
  'openai json': (buckets) =>
    JSON.stringify({
      object: 'page',
      data: buckets.map((b) => ({
        object: 'bucket',
        start_time: seconds(b.day),
        end_time: seconds(nextDay(b.day)),
        results: [
          {
            object: 'organization.usage.completions.result',
            input_tokens: b.input,
            output_tokens: b.output,
            input_cached_tokens: b.cached,
            num_model_requests: b.requests,
            model: b.model,
            batch: null,
          },
        ],
      })),
      has_more: false,
      next_page: null,
    }),
  'anthropic csv': (buckets) =>
    csv([
      [
        'usage_date_utc',
        'model_version',
        'api_key',
        'usage_input_tokens_no_cache',
        'usage_input_tokens_cache_write_5m',
        'usage_input_tokens_cache_write_1h',
        'usage_input_tokens_cache_read',
        'usage_output_tokens',
      ],
      ...buckets.map((b) => [
        b.day,
        b.model,
        'a "key"',
        b.input - b.cached - b.cacheWrite,
        b.cacheWrite - Math.floor(b.cacheWrite / 3),
        Math.floor(b.cacheWrite / 3),
        b.cached,
        b.output,
      ]),
    ]),
  'anthropic json': (buckets) =>
    JSON.stringify({
      data: buckets.map((b) => ({
        starting_at: `${b.day}T00:00:00Z`,
        ending_at: `${nextDay(b.day)}T00:00:00Z`,
        results: [
          {
            uncached_input_tokens: b.input - b.cached - b.cacheWrite,
            cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: b.cacheWrite },
            cache_read_input_tokens: b.cached,
            output_tokens: b.output,
            model: b.model,
          },
        ],
      })),
      has_more: false,
      next_page: null,
    }),
  'openrouter json': (buckets) =>
    JSON.stringify({
      data: buckets.map((b) => ({
        date: b.day,
        model: b.model,
        model_permaslug: `${b.model}-2030`,
        provider_name: 'x',
        usage: 0.015,
        requests: b.requests,
        prompt_tokens: b.input,
        completion_tokens: b.output,
        reasoning_tokens: 0,
      })),
    }),
  plain: (buckets) =>
    csv([
      [
        'date',
        'model',
        'requests',
        'input_tokens',
        'cached_input_tokens',
        'cache_write_tokens',
        'output_tokens',
        'cost',
      ],
      ...buckets.map((b) => [b.day, b.model, b.requests, b.input, b.cached, b.cacheWrite, b.output, '0.25']),
    ]),
};

/** OpenRouter's export of single requests. */
export function exportOfCalls(calls: readonly Call[]): string {
  return csv([
    [
      'generation_id',
      'created_at',
      'cost_total',
      'tokens_prompt',
      'tokens_completion',
      'tokens_cached',
      'model_permaslug',
    ],
    ...calls.map((call, index) => [
      `gen-${index}`,
      new Date(call.beganMs + (call.countsAtEnd ? call.durationMs : 0))
        .toISOString()
        .replace('T', ' ')
        .replace('Z', ''),
      '0.0001',
      call.input,
      call.output,
      call.cached,
      call.model,
    ]),
  ]);
}

type PresentedAttempt = PresentedRecord['attempts'][number];

/** An attempt in a record. Without a call it got no usage. */
export function attemptOf(
  call: Call | null,
  createdMs: number,
  more: Partial<PresentedAttempt> = {},
): PresentedAttempt {
  return {
    upstream: 'far',
    model: call?.model ?? 'large',
    result: 'ok',
    started_ms: call === null ? 0 : call.beganMs - createdMs,
    duration_ms: call?.durationMs ?? 10,
    usage:
      call === null
        ? null
        : {
            input_tokens: call.input,
            cached_input_tokens: call.cached,
            cache_write_tokens: call.cacheWrite,
            output_tokens: call.output,
            reasoning_tokens: 0,
            total_tokens: call.input + call.output,
          },
    cause: null,
    upstream_error: null,
    ...more,
  };
}

/** A record of some attempts, as the admin listener shows it. */
export function recordOf(
  createdMs: number,
  attempts: readonly PresentedAttempt[],
  more: object = {},
): PresentedRecord {
  return {
    created_at: new Date(createdMs).toISOString(),
    protocol: 'chat',
    upstream: attempts.at(-1)?.upstream ?? 'far',
    outcome: 'completed',
    charge: '0.01',
    attempts: [...attempts],
    ...more,
  } as unknown as PresentedRecord;
}

/** Reconciles a text with records, exactly unless a tolerance is given. */
export async function reconcileText(
  folder: string,
  text: string,
  records: readonly PresentedRecord[],
  tolerance = 0,
): Promise<Reconciliation> {
  const file = join(folder, 'export');
  writeFileSync(file, text);
  const calendar = calendarOf('UTC');
  const theirs = await readExport(file, { format: null, calendar, names: new Map() });
  const range = { from: firstDay, to: dayOf(firstMs + days * 86_400_000) };
  const reader = new OurUsageReader('far', range, calendar);
  for (const record of records) reader.add(record);
  return compareUsage(theirs, reader.usage(), range, tolerance);
}

/** The lines that differ, as `day model: quantities`. */
export function differencesIn({ lines }: Reconciliation): readonly string[] {
  return lines
    .filter(({ agrees }) => !agrees)
    .map(({ day, model, comparisons }) => {
      const what = comparisons.filter(({ agrees }) => !agrees).map(({ quantity }) => quantity);
      return `${day ?? 'all'} ${model}: ${what.join(' ')}`;
    });
}
