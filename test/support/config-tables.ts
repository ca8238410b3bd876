import { stringify } from 'yaml';
import { z } from 'zod';
import { kindOf, unwrap } from '../../src/config/schema/schema-walk.ts';
import { anyConfig } from '../../src/config/schema/schema.ts';
import type { ValueKind } from '../../src/shared/schema-values.ts';

/** How the documentation names the values that have a form of their own. */
const kindNames: Readonly<Record<ValueKind, string>> = {
  duration: 'duration',
  size: 'size',
  usd: 'USD',
  share: 'percentage',
  url: 'address',
  database: 'address',
  secret: 'secret',
  key: 'secret, or its hash',
  path: 'text',
  instant: 'time',
};

/** The keys that are objects with the same keys as another one, which has the rows. */
const described = new Map([['models.price', '`models.<name>.price`']]);

/** The keys that most files have, in the order in which a file grows. */
const usual: readonly string[] = [
  'upstreams.<name>.url',
  'upstreams.<name>.apiKey',
  'upstreams.<name>.dialects',
  'upstreams.<name>.maxInFlight',
  'models.<name>.routes',
  'models.<name>.routes[].upstream',
  'models.<name>.routes[].model',
  'models.<name>.price.input',
  'models.<name>.price.output',
  'models.<name>.free',
  'models.from',
  'limits.concurrency',
  'limits.requestsPerMinute',
  'server.host',
  'server.port',
  'server.tls.cert',
  'server.tls.key',
  'server.trustedProxies',
  'admin.host',
  'storage.url',
];

/** The keys that few files need, with all that is inside them: they have one table behind all others. */
const advanced: readonly string[] = [
  'upstreams.<name>.allowLinkLocal',
  'upstreams.<name>.emptyAnswer',
  'upstreams.<name>.hiddenPrompt',
  'upstreams.<name>.tls.serverName',
  'models.<name>.routes[].retryWithin',
  'models.<name>.price.above',
  'models.<name>.thinks',
  'models.<name>.hedge',
  'models.<name>.shadow',
  'models.holdTokens',
  'models.thinks',
  'server.socketMode',
  'server.maxHead',
  'server.timeouts',
  'server.maxConnections',
  'server.maxAnonymousPerAddress',
  'admin.tokenFolder',
  'storage.allowMigrated',
  'storage.spool',
  'compatibility.responsesDone',
  'compatibility.usageCost',
  'compatibility.chargeComment',
  'keys.<name>.weight',
  'keys.<name>.joinRetries',
  'keys.<name>.compatibility.responsesDone',
  'keys.<name>.compatibility.usageCost',
  'keys.<name>.compatibility.chargeComment',
  'metering',
  'webhooks.<name>.proxy',
  'webhooks.<name>.tls',
  'events',
  'statements',
];

/** The sections that every file has: they come first, the others in the order of the schema. */
const firstSections: ReadonlySet<string> = new Set(['upstreams', 'models']);

/** A row of a table: the key that it is about, and its text. */
interface Row {
  readonly path: string;
  readonly text: string;
}

const tableHead = '| key | value | default | meaning |\n|---|---|---|---|';

const isAdvanced = ({ path }: Row): boolean =>
  advanced.some((key) => path === key || path.startsWith(`${key}.`));

const writeTable = (rows: readonly Row[]): string => [tableHead, ...rows.map(({ text }) => text)].join('\n');

/**
 * The documentation's tables of all config keys: those that most files have, those of each section, and those that few files
 * need. Throws when a list of this file names a key that the schema does not have.
 */
export function writeConfigTables(): string {
  const sections = (Object.entries(anyConfig.shape) as [string, z.ZodType][]).map(([name, schema]) => ({
    name,
    description: descriptionOf(schema),
    rows: rowsIn(schema, name),
  }));
  const rows = sections.flatMap((section) => section.rows);
  const has = (key: string): boolean =>
    rows.some(({ path }) => path === key) || sections.some(({ name }) => name === key);
  const unknown = [...usual, ...advanced].filter((key) => !has(key));
  if (unknown.length > 0) throw new Error(`the schema has no key ${unknown.join(', ')}`);
  const isFirst = ({ name }: { readonly name: string }): boolean => firstSections.has(name);
  const ordered = [...sections.filter(isFirst), ...sections.filter((section) => !isFirst(section))];
  const written = ordered.flatMap(({ name, description, rows: own }) => {
    const shown = own.filter((row) => !isAdvanced(row));
    return shown.length === 0 ? [] : [`### ${name}\n\n${description}\n\n${writeTable(shown)}`];
  });
  const most = usual.flatMap((key) => rows.filter(({ path }) => path === key));
  return [
    `### What most files have\n\n${writeTable(most)}`,
    ...written,
    `### Advanced\n\nWhat few files need, of all sections.\n\n${writeTable(rows.filter(isAdvanced))}`,
  ].join('\n\n');
}

/** The rows of all keys inside a value, in the order of the schema. */
function rowsIn(schema: z.ZodType, path: string): readonly Row[] {
  const inner = unwrap(schema);
  // The usual form first: a list of models before the discovery of models.
  if (inner instanceof z.ZodUnion)
    return inner.options.toReversed().flatMap((option) => rowsIn(option as z.ZodType, path));
  if (inner instanceof z.ZodRecord) return rowsIn(inner.valueType as z.ZodType, `${path}.<name>`);
  if (inner instanceof z.ZodArray) return rowsIn(inner.element as z.ZodType, `${path}[]`);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(inner.shape).flatMap(([key, value]) => {
    const here = `${path}.${key}`;
    const other = described.get(here);
    const row = writeRow(here, value as z.ZodType, other);
    return other === undefined ? [row].concat(rowsIn(value as z.ZodType, here)) : [row];
  });
}

function writeRow(path: string, schema: z.ZodType, other: string | undefined): Row {
  const meaning = other === undefined ? descriptionOf(schema) : `${descriptionOf(schema)} Keys: ${other}.`;
  return { path, text: `| \`${path}\` | ${typeOf(schema)} | ${defaultOf(schema)} | ${meaning} |` };
}

function typeOf(schema: z.ZodType): string {
  const kind = kindOf(schema);
  if (kind !== undefined) return kindNames[kind];
  const inner = unwrap(schema);
  if (inner instanceof z.ZodEnum) return inner.options.map((option) => `\`${option}\``).join(', ');
  if (inner instanceof z.ZodArray) return typeOfList(unwrap(inner.element as z.ZodType));
  if (inner instanceof z.ZodBoolean) return '`true`, `false`';
  if (inner instanceof z.ZodLiteral) return `\`${String(inner.value)}\``;
  if (inner instanceof z.ZodNumber) return inner.isInt ? 'whole number' : 'number';
  if (inner instanceof z.ZodUnion) return typesOf(inner.options as readonly z.ZodType[]);
  if (inner instanceof z.ZodPipe) return typeOf(inner.in as z.ZodType);
  return inner instanceof z.ZodString ? 'text' : 'object';
}

/** The forms that a value may have, the usual one first: an object or a text. */
function typesOf(options: readonly z.ZodType[]): string {
  return [...new Set(options.toReversed().map(typeOf))].join(' or ');
}

function typeOfList(element: z.ZodType): string {
  return element instanceof z.ZodEnum ? `list of ${typeOf(element)}` : `list of ${typeOf(element)}s`;
}

function defaultOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodOptional) return '–';
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return 'required';
  const value: unknown = schema.def.defaultValue;
  if (JSON.stringify(value) === '{}') return '–';
  return `\`${stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).trim()}\``;
}

function descriptionOf(schema: z.ZodType): string {
  return schema.meta()?.description ?? '';
}
