import { Document, visit } from 'yaml';
import { defaultAdminPort, defaultPort } from '../../config/default-addresses.ts';
import { isLocalHost } from '../../config/proxy-environment.ts';
import { count } from '../../shared/count.ts';
import { describePrice } from './choose-models.ts';
import type { ChosenModel, ChosenModels } from './choose-models.ts';
import type { FoundUpstream } from './known-upstreams.ts';
import { variableOf } from './known-upstreams.ts';

/** The beginning of a config file that a command has written. */
export function headOf(command: string): string {
  return `# Written by \`textgate ${command}\`. docs/operators/config.md has all settings, \`textgate config schema\` has them for editors.
# \${NAME} stands for an environment variable. A change takes effect while the gateway runs.
`;
}

/** The end of such a file. */
export const foot = `
# What each key may do, unless it has limits of its own:
# limits: { concurrency: 2, requestsPerMinute: 60, queueWait: 10s }
`;

/** A config that offers the models which an upstream lists: it is what the list is fetched by. */
export function writeDiscovery({ name, line }: FoundUpstream): string {
  return String(new Document({ upstreams: { [name]: line }, models: { from: name } }));
}

/** The ports that upstreams leave to the gateway on this machine: another one where one of them has the usual one. */
export function portsBeside(upstreams: readonly FoundUpstream[]): {
  readonly port: number;
  readonly adminPort: number;
} {
  const addresses = upstreams.flatMap(({ line }) => URL.parse(line.url) ?? []);
  const taken = new Set(
    addresses.filter(({ hostname }) => isLocalHost(hostname)).map(({ port }) => Number(port)),
  );
  const free = (usual: number): number =>
    [usual, usual + 10, usual + 20].find((port) => !taken.has(port)) ?? usual;
  return { port: free(defaultPort), adminPort: free(defaultAdminPort) };
}

/** The text of a config file for upstreams and their models. */
export function writeConfig(chosen: readonly ChosenModels[]): string {
  const { port, adminPort } = portsBeside(chosen.map(({ upstream }) => upstream));
  const listeners = [
    ...(port === defaultPort ? [] : [`server: { port: ${port} } # an upstream has ${defaultPort}`]),
    ...(adminPort === defaultAdminPort
      ? []
      : [`admin: { port: ${adminPort} } # an upstream has ${defaultAdminPort}`]),
  ];
  return [
    headOf('init'),
    ...listeners,
    ...(listeners.length === 0 ? [] : ['']),
    'upstreams:',
    ...chosen.map(({ upstream }) => entry(upstream.name, flow(upstream.line), describeUpstream(upstream))),
    '',
    '# What clients may ask for, by the names on the left.',
    'models:',
    ...chosen.flatMap(({ upstream, models, leftOut }) => [
      ...models.map(writeModel),
      ...(leftOut === 0
        ? []
        : [
            `  # ${upstream.name} lists ${count(leftOut, 'more model')}, which can be added in the same way.`,
          ]),
    ]),
    foot,
  ].join('\n');
}

function describeUpstream({ line }: FoundUpstream): string {
  const variable = variableOf(line);
  return variable === null ? 'without a key' : `its key is read from ${variable}`;
}

function writeModel({ name, route, price }: ChosenModel): string {
  const routes = `routes: [${flow(route)}]`;
  switch (price.kind) {
    case 'list':
      return entry(name, `{ ${routes}, price: list }`, describePrice(price.terms));
    case 'named':
      return entry(name, `{ ${routes}, price: ${flow({ list: price.list })} }`, describePrice(price.terms));
    case 'free':
      return entry(name, `{ ${routes}, free: true }`, describeFree(price.isProviderKnown));
  }
}

/** What is said of a model without a price. */
export function describeFree(isProviderKnown: boolean): string {
  const instead = 'for a price write price: { input: "0.15", output: "0.60" } in place of free';
  return isProviderKnown
    ? `NO PRICE IS KNOWN, so it costs clients nothing: ${instead}`
    : `costs clients nothing; ${instead}`;
}

/** A setting and its value on one line, with a comment behind it. */
export function entry(name: string, value: string, comment: string): string {
  return `  ${flow(name)}: ${value} # ${comment}`;
}

/** A value on one line, as it stands in a list or a map on one line. */
export function flow(value: object | string): string {
  const document = new Document([value]);
  visit(document, { Collection: (_key, node) => void (node.flow = true) });
  // Without the brackets of the list, within which a text is quoted if it has to be.
  return document.toString({ lineWidth: 0 }).trim().slice(1, -1).trim();
}
