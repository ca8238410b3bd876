import { isDeepStrictEqual } from 'node:util';
import { limiterFields } from '../../config/schema/limiter-schema.ts';

/** The settings of an upstream without those of its limits: with other limits it is still the same upstream. */
export function withoutLimits<Settings extends object>(config: Settings): Partial<Settings> {
  const others = Object.entries(config).filter(([name]) => !(name in limiterFields));
  return Object.fromEntries(others) as Partial<Settings>;
}

/** Whether the settings of an upstream are the same, but for its limits. */
export function isSameUpstream(one: object = {}, other: object = {}): boolean {
  return isDeepStrictEqual(withoutLimits(one), withoutLimits(other));
}
