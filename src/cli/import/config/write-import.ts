import { escapeControlCharacters } from '../../../shared/control-characters.ts';
import { describePrice } from '../../init/choose-models.ts';
import { variableOf } from '../../init/known-upstreams.ts';
import { describeFree, entry, flow, foot, headOf } from '../../init/write-config.ts';
import type { Imported, ImportedModel } from './convert.ts';
import type { ImportedPrice } from './find-price.ts';
import type { ImportedLine } from './find-target.ts';
import type { Route } from './weigh-routes.ts';

const ownPort = `# LiteLLM's port, for clients that keep their base URL:
# server: { port: 4000 }
`;

/** The text of a config file. */
export function writeImport({ upstreams, models, discovery, ignoresUnknownFields, notes }: Imported): string {
  const leftOut = notes.of('none').filter(({ settings }) => settings.has('model'));
  const served = new Set(models.map(({ name }) => name));
  return [
    headOf('import litellm'),
    ownPort,
    ...(ignoresUnknownFields ? ['compatibility: { unknownFields: ignore } # drop_params\n'] : []),
    'upstreams:',
    ...[...upstreams].map(writeUpstream),
    '',
    '# What clients may ask for, by the names on the left.',
    discovery === null ? 'models:' : `models: ${flow(discovery)} # they cost clients nothing`,
    ...models.map(writeModel),
    ...leftOut.flatMap(({ models: names, text }) =>
      Array.from(names, (name) =>
        escapeControlCharacters(
          `  # ${served.has(name) ? 'an entry of ' : ''}${flow(name)} is left out: ${text}`,
        ),
      ),
    ),
    foot,
  ].join('\n');
}

/** The longest line of an upstream, in characters. */
const maxLineChars = 120;

function writeUpstream([name, line]: readonly [string, ImportedLine]): string {
  const short = entry(name, flow(line), describeKey(line));
  if (short.length <= maxLineChars) return short;
  return [`  ${flow(name)}: # ${describeKey(line)}`, ...writeSettings(line, '    ')].join('\n');
}

/** Settings, each on a line of its own, and those in one that is too long below it. */
function writeSettings(settings: object, indent: string): readonly string[] {
  return Object.entries(settings).flatMap(([name, value]: [string, object | string]) => {
    const short = `${indent}${flow(name)}: ${flow(value)}`;
    if (short.length <= maxLineChars || typeof value === 'string') return [short];
    return [`${indent}${flow(name)}:`].concat(writeSettings(value, `${indent}  `));
  });
}

function describeKey({ apiKey }: ImportedLine): string {
  if (apiKey === undefined) return 'without a key';
  return typeof apiKey === 'string'
    ? `its key is read from ${variableOf({ apiKey })}`
    : 'its key is printed by a command';
}

function writeModel({ name, routes, policy, price }: ImportedModel): string {
  const [only, ...others] = routes;
  const cost = `${price.setting}: ${flow(price.value as object | string)}`;
  if (only !== undefined && others.length === 0)
    return entry(name, `{ routes: [${flow(target(only))}], ${cost} }`, describe(price));
  return [
    `  ${flow(name)}:`,
    ...(policy === null ? [] : [`    policy: ${policy}`]),
    '    routes:',
    ...routes.map((route) => `      - ${flow(target(route))}${route.isFallback ? ' # a fallback' : ''}`),
    `    ${cost} # ${describe(price)}`,
  ].join('\n');
}

function target({ upstream, model, weight }: Route): object {
  return { upstream, model, ...(weight === undefined ? {} : { weight }) };
}

function describe({ origin, terms, setting }: ImportedPrice): string {
  if (terms !== null) return describePrice(terms);
  if (origin === 'own') return setting === 'free' ? 'costs clients nothing, as in LiteLLM' : 'as in LiteLLM';
  return describeFree(origin === 'unlisted');
}
