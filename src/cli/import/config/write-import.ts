import { describePrice } from '../../init/choose-models.ts';
import { variableOf } from '../../init/known-upstreams.ts';
import { entry, flow } from '../../init/write-config.ts';
import type { Imported, ImportedModel } from './convert.ts';
import type { ImportedPrice } from './find-price.ts';
import type { ImportedLine } from './find-target.ts';
import type { Route } from './weigh-routes.ts';

const head = `# Written by \`textgate import litellm\`. docs/operators/config.md has all settings, \`textgate config schema\` has them for editors.
# \${NAME} stands for an environment variable. A change takes effect while the gateway runs.

# LiteLLM's port, for clients that keep their base URL:
# server: { port: 4000 }
`;

const foot = `
# What each key may do, unless it has limits of its own:
# limits: { concurrency: 2, requestsPerMinute: 60, queueWait: 10s }
`;

/** The text of a config file. */
export function writeImport({ upstreams, models, ignoresUnknownFields, notes }: Imported): string {
  const leftOut = notes.all().filter(({ result, setting }) => result === 'none' && setting === 'model');
  return [
    head,
    ...(ignoresUnknownFields ? ['compatibility: { unknownFields: ignore } # drop_params\n'] : []),
    'upstreams:',
    ...[...upstreams].map(writeUpstream),
    '',
    '# What clients may ask for, by the names on the left.',
    'models:',
    ...models.map(writeModel),
    ...leftOut.flatMap(({ models: names, text }) =>
      [...names].map((name) => `  # ${flow(name)} is left out: ${text}`),
    ),
    foot,
  ].join('\n');
}

/** The longest line of an upstream, in characters. */
const maxLineChars = 120;

function writeUpstream([name, line]: readonly [string, ImportedLine]): string {
  const short = entry(name, flow(line), describeKey(line));
  if (short.length <= maxLineChars) return short;
  const settings = Object.entries(line).map(
    ([setting, value]) => `    ${setting}: ${flow(value as object | string)}`,
  );
  return [`  ${flow(name)}: # ${describeKey(line)}`, ...settings].join('\n');
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
  return 'NO PRICE IS KNOWN, so it costs clients nothing: for a price write price: { input: "0.15", output: "0.60" } in place of free';
}
