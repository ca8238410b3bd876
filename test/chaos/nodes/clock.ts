import { kills } from './kills.ts';
import { limits } from './limits.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';
import { strict } from './strict.ts';

const hourMs = 3_600_000;

/** The clock of one gateway is an hour ahead, that of the other one an hour behind: nothing may be different. */
export async function clock(options: ScenarioOptions): Promise<ScenarioResult> {
  const shifted = { ...options, clockShiftsMs: [hourMs, -hourMs] };
  const results = [];
  for (const play of [limits, strict, kills]) results.push(await play(shifted));
  return {
    figures: results.map(({ figures }) => figures).join('; '),
    faults: results.flatMap(({ faults }) => faults),
  };
}
