/** What the simulated upstream does for one request. A prompt has it as `simulate(textEvents=200,perWrite=8)`. */
export interface SimulatorSettings {
  /** The events with text in a stream; its role, finish, usage and `[DONE]` come on top. */
  readonly textEvents: number;
  /** How many events one write has, when they are sent as fast as they are taken. */
  readonly perWrite: number;
  /** The time between two events in milliseconds; 0 sends them as fast as they are taken. */
  readonly intervalMs: number;
  /** The time from the request to the first text, in milliseconds. */
  readonly firstTextMs: number;
  /** How long before the first text the role is sent, in milliseconds; 0 sends them in one write. */
  readonly roleAheadMs: number;
  /** The length of a whole answer's text, in bytes. */
  readonly bodyBytes: number;
  /** 1: the stream goes on until the simulator releases all that it holds. */
  readonly held: number;
  /** 1: the first text of a stream says when its request arrived and when the text was written. 2: the others say the latter. */
  readonly timed: number;
  /** 1: the stream never ends. */
  readonly endless: number;
}

/** The setting `timed` with which each text of a stream that is sent at its pace says when it was written. */
export const everyText = 2;

const defaults: SimulatorSettings = {
  textEvents: 200,
  perWrite: 1,
  intervalMs: 0,
  firstTextMs: 0,
  roleAheadMs: 0,
  bodyBytes: 700,
  held: 0,
  timed: 0,
  endless: 0,
};

/** Writes settings for a prompt. */
export function writeSettings(settings: Partial<SimulatorSettings>): string {
  const pairs = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return `simulate(${pairs.join(',')})`;
}

/** Reads the settings out of a request's body; those that it does not have keep their default. */
export function readSettings(body: string): SimulatorSettings {
  const [, pairs = ''] = /simulate\(([^)]*)\)/.exec(body) ?? [];
  const given = pairs.split(',').map((pair) => pair.split('=') as [string, string?]);
  const known = given.filter(([name]) => name in defaults).map(([name, value]) => [name, Number(value)]);
  return { ...defaults, ...(Object.fromEntries(known) as Partial<SimulatorSettings>) };
}
