import type { Quantity } from './quantities.ts';

/** The names of the formats, as `--format` has them. */
export type FormatName = 'openai' | 'anthropic' | 'openrouter' | 'plain';

/** The fields of a quantity, which are added up; one that ends in `?` may be missing. In JSON, a dot leads into an object. */
type Fields = readonly string[];

/** What is read of an export. All other fields are ignored. */
export interface ExportFormat {
  readonly name: FormatName;
  readonly form: 'csv' | 'json';
  /** The fields by which the format is recognized. */
  readonly marks: readonly string[];
  /** The first of these fields that is there has the time of a row. */
  readonly time: readonly string[];
  readonly model: string;
  /** `each_row` where a row is a request. A quantity without fields is not compared. */
  readonly quantities: Readonly<Partial<Record<Quantity, Fields | 'each_row'>>>;
  /** The field with the cost in USD. */
  readonly cost: string | null;
  /** What to do if a row has no model. */
  readonly howToGroup: string;
}

const openaiFields = {
  time: ['start_time', 'start_time_iso'],
  model: 'model',
  quantities: {
    requests: ['num_model_requests'],
    input: ['input_tokens'],
    cached: ['input_cached_tokens'],
    output: ['output_tokens'],
  },
  cost: null,
  howToGroup: 'export it grouped by model (group_by=model)',
} as const;

const plainFields = {
  time: ['date'],
  model: 'model',
  quantities: {
    requests: ['requests?'],
    input: ['input_tokens'],
    cached: ['cached_input_tokens?'],
    cacheWrite: ['cache_write_tokens?'],
    output: ['output_tokens'],
  },
  cost: 'cost',
  howToGroup: 'every row needs one',
} as const;

/** Every export that can be read; the first one whose marks are there is used. */
export const formats: readonly ExportFormat[] = [
  { name: 'openai', form: 'csv', marks: ['num_model_requests', 'input_tokens'], ...openaiFields },
  { name: 'openai', form: 'json', marks: ['num_model_requests', 'input_tokens'], ...openaiFields },
  {
    name: 'anthropic',
    form: 'csv',
    marks: ['usage_date_utc', 'usage_output_tokens'],
    time: ['usage_date_utc'],
    model: 'model_version',
    quantities: {
      input: [
        'usage_input_tokens_no_cache',
        'usage_input_tokens_cache_write_5m',
        'usage_input_tokens_cache_read',
        'usage_input_tokens_cache_write_1h?',
      ],
      cached: ['usage_input_tokens_cache_read'],
      cacheWrite: ['usage_input_tokens_cache_write_5m', 'usage_input_tokens_cache_write_1h?'],
      output: ['usage_output_tokens'],
    },
    cost: null,
    howToGroup: 'every row needs one',
  },
  {
    name: 'anthropic',
    form: 'json',
    marks: ['uncached_input_tokens', 'output_tokens'],
    time: ['starting_at'],
    model: 'model',
    quantities: {
      input: [
        'uncached_input_tokens',
        'cache_read_input_tokens',
        'cache_creation.ephemeral_5m_input_tokens?',
        'cache_creation.ephemeral_1h_input_tokens?',
      ],
      cached: ['cache_read_input_tokens'],
      cacheWrite: ['cache_creation.ephemeral_5m_input_tokens?', 'cache_creation.ephemeral_1h_input_tokens?'],
      output: ['output_tokens'],
    },
    cost: null,
    howToGroup: 'export it grouped by model (group_by[]=model)',
  },
  {
    name: 'openrouter',
    form: 'csv',
    marks: ['generation_id', 'tokens_prompt'],
    time: ['created_at'],
    model: 'model_permaslug',
    quantities: {
      requests: 'each_row',
      input: ['tokens_prompt'],
      cached: ['tokens_cached?'],
      output: ['tokens_completion'],
    },
    cost: 'cost_total',
    howToGroup: 'every row needs one',
  },
  {
    name: 'openrouter',
    form: 'json',
    marks: ['model_permaslug', 'prompt_tokens'],
    time: ['date'],
    model: 'model',
    quantities: {
      requests: ['requests'],
      input: ['prompt_tokens'],
      output: ['completion_tokens'],
    },
    cost: 'usage',
    howToGroup: 'every row needs one',
  },
  { name: 'plain', form: 'csv', marks: ['date', 'input_tokens'], ...plainFields },
  { name: 'plain', form: 'json', marks: ['date', 'input_tokens'], ...plainFields },
];

/**
 * The format of an export with these fields. Throws if no format has them, or if the chosen one lacks a field, which is
 * named.
 */
export function findFormat(
  form: ExportFormat['form'],
  has: (field: string) => boolean,
  chosen: FormatName | null,
): ExportFormat {
  const possible = formats.filter(
    (format) => format.form === form && (chosen ?? format.name) === format.name,
  );
  const found = possible.find(({ marks }) => marks.every(has)) ?? (chosen === null ? undefined : possible[0]);
  if (found === undefined) {
    const marks = possible.map((format) => `${format.name}: ${format.marks.join(', ')}`).join('; ');
    throw new Error(`the format is not recognized by the fields of the export (${marks}): see --format`);
  }
  const missing = neededFields(found).find((field) => !has(field));
  if (missing !== undefined)
    throw new Error(`an export of the format ${found.name} needs ${missing}, which is missing`);
  if (!found.time.some(has))
    throw new Error(`an export of the format ${found.name} needs ${found.time[0]}, which is missing`);
  return found;
}

/** The fields without which an export of this format can't be read, but for that of the time. */
function neededFields(format: ExportFormat): readonly string[] {
  const fields = Object.values(format.quantities).flatMap((each) =>
    each === 'each_row' ? [] : each.filter((field) => !field.endsWith('?')),
  );
  return [format.model, ...fields];
}

/** The quantities of an export with these fields. */
export function comparedQuantities(
  format: ExportFormat,
  has: (field: string) => boolean,
): readonly Quantity[] {
  return (Object.entries(format.quantities) as [Quantity, Fields | 'each_row'][]).flatMap(
    ([quantity, each]) => (each === 'each_row' || fieldsOf(each).some(has) ? [quantity] : []),
  );
}

/** All fields of a quantity. */
export function fieldsOf(fields: Fields): readonly string[] {
  return fields.map((field) => field.replace(/\?$/, ''));
}
