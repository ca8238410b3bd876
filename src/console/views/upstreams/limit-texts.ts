import type { PresentedUpstream } from '../../../http/present/upstream.ts';
import { formatCount } from '../../widgets/format.ts';

export type UpstreamLimiter = NonNullable<PresentedUpstream['limiter']>;

/** The limits of an upstream, or of a model there. */
export type Limits = Omit<UpstreamLimiter, 'models' | 'pauses'>;

/** How its limits are used and how many wait, on one line. */
export function usageOf(limiter: Limits & { readonly models?: UpstreamLimiter['models'] }): string {
  const texts = limitsOf(limiter).map(([, text]) => text);
  const { length: models } = limiter.models ?? [];
  if (models > 0)
    texts.push(
      models === 1
        ? 'one model has limits of its own'
        : `${formatCount(models)} models have limits of their own`,
    );
  const used = texts.length === 0 ? 'none reached or learned yet' : texts.join('; ');
  return limiter.waiting === 0 ? used : `${used}; ${formatCount(limiter.waiting)} waiting`;
}

/** A line for each limit, by a name of its own. */
export function limitsOf(limiter: Limits): readonly (readonly [string, string])[] {
  const { max_in_flight: most, learned_in_flight: learnedMost } = limiter;
  const all = [
    ['flight', most, (count: string) => `${formatCount(limiter.in_flight)} of ${count} requests at a time`],
    ['bound', learnedMost, (count: string) => `${count} at a time is what its answers of 429 have shown`],
    ['starts', limiter.starts_left, (count: string) => `${count} starts left in this minute`],
    ['tokens', limiter.tokens_left, (count: string) => `${count} tokens left in this minute`],
  ] as const;
  return [
    ...all.flatMap(([name, value, write]) =>
      value === null ? [] : [[name, write(formatCount(value))] as const],
    ),
    ...limiter.learned.map(
      ({ name, limit, left }) =>
        [name, `${formatCount(left)} of ${formatCount(limit)} ${name} left, as its answers say`] as const,
    ),
  ];
}
