import { readLogSettings } from '../../config/log-settings.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { ComposedGateway } from '../../gateway.ts';
import type { LogDestination } from '../../telemetry/log/log-destination.ts';
import { describeError } from '../describe-error.ts';
import { stopEndingOnEarlySignal } from '../early-signals.ts';
import { reachable } from '../addresses.ts';
import type { Seat } from '../workers/seat.ts';
import { adminTokenOf } from './own-admin-token.ts';
import { describeList, firstRequest, greeting, usesDemo } from './greeting.ts';
import { reloadOnChange } from './reload-on-change.ts';
import type { Reloaded, WatchedFile } from './reload-on-change.ts';
import { loadServeConfig, settingNamesFor } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';
import { endOnSignalOrFault } from './shutdown.ts';

/** What a process knows of itself beside the config. */
interface Circumstances {
  /** Its place among several workers; `null` when it is the only process. */
  readonly seat: Seat | null;
  /** Set to whether a shutdown has begun, which may make the start fail. */
  readonly ending: { hasBegun: () => boolean };
  /** The file that the config was read from; `null` when none is given. */
  readonly watched: WatchedFile | null;
}

/** Runs a gateway in this process, and says on standard error that it runs and how to use it. */
export async function runGateway(
  config: Config,
  options: ServeOptions,
  stderr: LogDestination,
  { seat, ending, watched }: Circumstances,
): Promise<void> {
  const isSpeaker = seat === null || seat.isFirst;
  const { token: adminToken, file: tokenFile } = adminTokenOf(config, options.config, (line) => {
    if (isSpeaker) stderr.write(`${line}\n`);
  });
  // Loaded here, so that all other commands start without the gateway's packages.
  const { composeGateway } = await import('../../gateway.ts');
  const log = readLogSettings(process.env);
  const gateway = composeGateway(
    config,
    { ...(adminToken === null ? {} : { adminToken }), ...log },
    settingNamesFor(options),
    seat,
  );
  const { isEnding, end } = endOnSignalOrFault(gateway, stderr, seat);
  ending.hasBegun = isEnding;
  stopEndingOnEarlySignal();
  if (seat !== null) attach(seat, gateway, options, { isEnding, end });
  else if (watched !== null) {
    const reloaded: Reloaded = {
      replaceConfig: (next) => gateway.replaceConfig(next),
      reloadFailed: (error) => gateway.reloadFailed(error),
    };
    reloadOnChange(reloaded, watched, options, stderr);
  }
  const { url, adminUrl } = await gateway.listen();
  // A signal during the start: a first key would be shown and never used.
  if (isEnding()) return;
  const key = isSpeaker ? await gateway.createFirstKey() : null;
  seat?.started();
  if (!isSpeaker) return;
  // A greeting that lacks a hint is better than a start that fails for a database that was away for a moment.
  const hasActiveKey = key !== null || (await gateway.hasActiveKey().catch(() => true));
  const isDemo = options.config === undefined && usesDemo(config);
  const declared = Object.keys(config.keys);
  stderr.write(`${greeting({ url, adminUrl, tokenFile, declared, key, hasActiveKey, isDemo })}\n`);
  // After the greeting: a list that can't be fetched takes a while, and its cause should be read last.
  const [model] = await gateway.modelNames();
  if (key !== null && model !== undefined) stderr.write(`${firstRequest(key, model, reachable(url))}\n`);
  const list = await gateway.fetchModelList();
  if (list !== null) stderr.write(`${describeList(list, isReadInLog(log))}\n`);
}

/** Lets the primary process reload the config of a worker, and end it. */
function attach(
  seat: Seat,
  gateway: ComposedGateway,
  options: ServeOptions,
  { isEnding, end }: ReturnType<typeof endOnSignalOrFault>,
): void {
  seat.attach(gateway, {
    end,
    reloadFailed: (reason) => gateway.reloadFailed(new Error(reason)),
    reload({ text, isCounted }) {
      try {
        gateway.replaceConfig(loadServeConfig(options, process.env, text), isCounted);
        return null;
      } catch (error) {
        // One that is about to end would make all others keep the previous config.
        return isEnding() ? null : describeError(error);
      }
    },
  });
}

/** Whether the log shows a person why the list of models can't be fetched. */
function isReadInLog({ logLevel, logFormat }: ReturnType<typeof readLogSettings>): boolean {
  return logLevel !== 'silent' && (logFormat ?? (process.stdout.isTTY ? 'text' : 'json')) === 'text';
}
