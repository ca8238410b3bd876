import { readProxyEnvironment } from '../../config/proxy-environment.ts';
import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import { examine } from '../../doctor/examine.ts';
import type { Check, UpstreamReport } from '../../doctor/report.ts';
import type { DoctorPorts, Target } from '../../doctor/target.ts';
import { hidePath, hideSecrets, mapTexts, withoutSecrets } from '../../doctor/without-secrets.ts';
import type { DialectName } from '../../protocol/upstream/dialects.ts';
import { createNetwork } from '../../transport/network.ts';
import { systemClock } from '../clock.ts';
import { followUpstreamFiles, readUpstreamFiles, unlogged } from './upstream-files.ts';
import { composeUpstreams, connectionsTo, sourceOf } from './upstreams.ts';
import type { NameSettings, Surroundings } from './upstreams.ts';

/** What to examine, and how. */
export interface DoctorOptions {
  /** The model to ask; `null` for that of the first route to each upstream, or the first one in its list. */
  readonly model: string | null;
  /** How long one call may take, in milliseconds. */
  readonly callMs: number;
  /** Whether it is checked that a wrong key is refused. */
  readonly triesWrongKey: boolean;
  /** Whether the Responses API is tested at every upstream that has it, whatever the config says. */
  readonly triesResponses: boolean;
  /** The names of an upstream's settings for the operator. */
  readonly nameSettings: NameSettings;
}

/** What an examination has of the process that makes it. */
export interface ExaminationPorts extends Surroundings, Pick<DoctorPorts, 'clock' | 'signal' | 'onChecks'> {}

/** Examines the upstreams of a config one after the other, so that their times do not disturb each other. */
export async function* examineUpstreams(
  config: Config,
  options: DoctorOptions,
): AsyncGenerator<UpstreamReport> {
  const findProxy = readProxyEnvironment();
  const files = followUpstreamFiles(readUpstreamFiles(config), systemClock, unlogged);
  const { signal } = new AbortController();
  const ports = { files, findProxy, clock: systemClock, signal, onChecks() {} };
  try {
    for (const name of Object.keys(config.upstreams))
      yield await examineUpstream(name, config, options, ports);
  } finally {
    files.stop();
  }
}

/** Examines one upstream of a config, over connections of its own. Rejects once the signal is raised. */
export async function examineUpstream(
  name: string,
  config: Config,
  options: DoctorOptions,
  ports: ExaminationPorts,
): Promise<UpstreamReport> {
  const upstream = upstreamOf(name, config);
  const { callMs } = options;
  const { files, findProxy, clock, signal, onChecks } = ports;
  const alone = { ...config, upstreams: { [name]: upstream } };
  const upstreams = composeUpstreams(alone, ports, clock);
  const withWrongKey = { files: { ...files, keyOf: () => wrongKey }, findProxy };
  const upstreamsWithWrongKey = options.triesWrongKey ? composeUpstreams(alone, withWrongKey, clock) : null;
  const connectMs = Math.min(upstream.timeouts.connect, callMs);
  const network = createNetwork({ ...connectionsTo(name, upstream, ports), connectMs });
  const target = targetOf(name, config, options, ports);
  const secrets = target.source.secrets().keys;
  try {
    const report = await examine(target, {
      upstreams,
      upstreamsWithWrongKey,
      network,
      clock,
      callMs,
      signal,
      onChecks(checks) {
        // A call that was broken off is no fault of the upstream.
        if (signal.aborted) return;
        onChecks(checks.map((check) => mapTexts(check, (text) => hideSecrets(text, secrets))));
      },
    });
    signal.throwIfAborted();
    return withoutSecrets(report, secrets);
  } finally {
    await upstreams.close();
    await upstreamsWithWrongKey?.close();
  }
}

/** Checks without the path of the upstream's base URL. */
export function hidePaths(checks: readonly Check[], url: URL): readonly Check[] {
  return checks.map((check) => mapTexts(check, (text) => hidePath(text, url)));
}

function upstreamOf(name: string, { upstreams }: Pick<Config, 'upstreams'>): Config['upstreams'][string] {
  const upstream = upstreams[name];
  if (upstream === undefined) throw new Error('no such upstream');
  return upstream;
}

/** A key that no server has. */
const wrongKey = 'textgate-doctor-wrong-key';

function targetOf(
  name: string,
  { upstreams, models }: Config,
  { model: wanted, triesResponses, nameSettings }: DoctorOptions,
  surroundings: Surroundings,
): Target {
  const upstream = upstreamOf(name, { upstreams });
  const [dialect, ...others] = upstream.dialects;
  if (dialect === undefined) throw new Error('an upstream without a dialect');
  const isDiscovery = isDiscovered(models);
  const routed = isDiscovery
    ? []
    : Object.values(models).flatMap(({ routes, shadow }) =>
        [...routes, ...(shadow === undefined ? [] : [shadow.route])]
          .filter((route) => route.upstream === name)
          .map(({ model }) => model),
      );
  return {
    name,
    url: upstream.url,
    source: sourceOf(name, upstreams, { nameSettings, ...surroundings }),
    dialect,
    hasApiKey: upstream.apiKey !== undefined,
    hasModels: wanted !== null || routed.length > 0 || (isDiscovery && models.from === name),
    responses: responsesIn(dialect, others, triesResponses),
    model: wanted ?? routed[0] ?? null,
    routed,
    allow: isDiscovery && models.from === name ? models.allow : ['*'],
  };
}

/** Whether the Responses API is tested beside the dialect in use. */
function responsesIn(
  dialect: DialectName,
  others: readonly DialectName[],
  isLookedFor: boolean,
): Target['responses'] {
  if (dialect === 'responses') return 'left_out';
  if (others.includes('responses')) return 'named';
  return isLookedFor ? 'looked_for' : 'left_out';
}
