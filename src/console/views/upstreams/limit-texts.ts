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
  const {
    max_in_flight: most,
    starts_left: starts,
    tokens_left: tokens,
    learned_in_flight: learnedMost,
  } = limiter;
  return [
    ...(most === null
      ? []
      : [
          ['flight', `${formatCount(limiter.in_flight)} of ${formatCount(most)} requests at a time`] as const,
        ]),
    ...(learnedMost === null
      ? []
      : [['bound', `${formatCount(learnedMost)} at a time is what its answers of 429 have shown`] as const]),
    ...(starts === null ? [] : [['starts', `${formatCount(starts)} starts left in this minute`] as const]),
    ...(tokens === null ? [] : [['tokens', `${formatCount(tokens)} tokens left in this minute`] as const]),
    ...limiter.learned.map(
      ({ name, limit, left }) =>
        [name, `${formatCount(left)} of ${formatCount(limit)} ${name} left, as its answers say`] as const,
    ),
  ];
}
