import { statSync } from 'node:fs';
import { systemClock } from '../../composition/clock.ts';
import { ConfigError, readConfigText } from '../../config/load.ts';
import type { Config } from '../../config/schema/schema.ts';
import { openStandardStream } from '../../telemetry/log/log-destination.ts';
import { describeError } from '../describe-error.ts';
import { maxColumns, wrap } from '../output.ts';
import { takeSeat } from '../workers/seat.ts';
import { environmentNotices } from './environment-notices.ts';
import { describeStartError, serveCommand } from './describe-start-error.ts';
import { runGateway } from './run-gateway.ts';
import { loadServeConfig, readServeText, sharedWorkerCount } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';

/**
 * Starts the gateway, which then runs until a signal: in this process, or in several workers, of which this process may
 * be one. Exits with 1 if it can't start.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const stderr = openStandardStream(
    process.stderr,
    (lines) => `textgate: ${lines} lines of standard error were dropped\n`,
  );
  let config: Config | null = null;
  const ending = { hasBegun: () => false };
  try {
    const seat = takeSeat(process.env, systemClock);
    if (seat === null)
      for (const notice of environmentNotices(process.env, options, textOf(options.config)))
        stderr.write(`${notice}\n`);
    // A worker gets the config that the others have, which may not be what the file has now.
    const text = seat === null ? readServeText(options) : await seat.configText();
    const { config: file } = options;
    const watched = file === undefined ? null : { file, since: text };
    config = loadServeConfig(options, process.env, text);
    const count = sharedWorkerCount(config);
    // Loaded here, so that one process alone has nothing of it.
    if (seat === null && count > 1)
      await (
        await import('../workers/supervise.ts')
      ).supervise({ config, text, watched }, count, options, stderr);
    else await runGateway(config, options, stderr, { seat, ending, watched });
  } catch (error) {
    // A shutdown that began during the start makes the start fail, and then ends the process itself.
    if (ending.hasBegun()) return;
    stderr.write(`${startFailure(error, config, options)}\n`);
    await stderr.flush(lastLinesMs);
    process.exit(1);
  }
}

function startFailure(error: unknown, config: Config | null, options: ServeOptions): string {
  if (error instanceof ConfigError) return error.message;
  const reason =
    config === null
      ? describeError(error)
      : describeStartError(error, {
          config,
          commandWith: (ports) => serveCommand({ ...options, ...ports }, process.env),
        });
  // The lines below the first one are commands, which are pasted whole.
  const [first = '', ...more] = reason.split('\n');
  return [...wrapped(`textgate can't start: ${first}`), ...more].join('\n');
}

/** A sentence on lines of at most 100 columns. */
function wrapped(sentence: string): readonly string[] {
  return wrap(sentence, maxColumns - 2).map((line, index) => (index === 0 ? line : `  ${line}`));
}

/** How long a failed start waits for its last lines on standard error, in milliseconds. */
const lastLinesMs = 1_000;

/** The text of a config file; empty if it can't be read, which the start reports, or only once, as a pipe. */
function textOf(file: string | undefined): string {
  try {
    return file !== undefined && statSync(file).isFile() ? readConfigText(file) : '';
  } catch {
    return '';
  }
}
