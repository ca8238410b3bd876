import type { Shape } from './play.ts';

/** The median time to the first text of all shapes, in milliseconds; the 99th percentile is twenty times as long. */
const medianMs = 400;

/** How much of a normal deviate is exceeded by one in a hundred. */
const normalP99 = 2.326;

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

const usual = (random: () => number): number => medianMs * Math.exp(0.25 * normal(random));

/** Of a thousand requests 25 are stuck for 5 to 10 s. */
export const stalls: Shape = {
  name: 'stalls: 2.5 % of the calls take 5 to 10 s, whatever the others do',
  firstTextMs: (random) => (random() < 0.025 ? 5_000 + 5_000 * random() : usual(random)),
};

/** A lognormal time: the longer a request has waited, the longer it is likely to wait. */
export const longTail: Shape = {
  name: 'a long tail: all times are lognormal',
  firstTextMs: (random) => medianMs * Math.exp((Math.log(20) / normalP99) * normal(random)),
};

/** Both upstreams are slow at the same times, for five of every two hundred seconds. */
export const together: Shape = {
  name: 'slow together: for 5 s in every 200 s all calls of both upstreams take 5 to 10 s',
  firstTextMs: (random, nowMs) => (nowMs % 200_000 < 5_000 ? 5_000 + 5_000 * random() : usual(random)),
};
