import { Allowance } from './allowance.ts';
import type { AllowanceKind } from './allowance.ts';
import { LimitersScene } from './scene.ts';
import { SimulatedUpstream } from './upstream.ts';
import type { HeaderFamily, TokenCount } from './upstream.ts';

const minuteMs = 60_000;

/** The limits of the upstream, which the gateway knows from headers only. */
const requestsPerMinute = 60;
const tokensPerMinute = 6_000;

/** The tokens of each request of others that use the account, and the mean time between two, in milliseconds. */
const othersTokens = 100;
const othersEveryMs = 2_000;

/** How many keys always have a request that waits. */
const keys = 20;

export interface LearnedCase {
  readonly kind: AllowanceKind;
  readonly family: HeaderFamily;
  readonly tokenCount: TokenCount;
  /** Which limit binds: small requests use up the requests, large ones the tokens. */
  readonly binding: 'requests' | 'tokens';
  /** Whether others use half of the same account, of which the gateway sees the effects only. */
  readonly others?: boolean;
}

/** Families of headers that report both limits, in all ways of counting. */
export const learnedCases: readonly LearnedCase[] = [
  ...(['openai', 'anthropic'] as const).flatMap((family) => waysOf('bucket', family)),
  ...(['openai', 'minute'] as const).flatMap((family) => waysOf('window', family)),
  { kind: 'window', family: 'plain', tokenCount: 'at the end', binding: 'requests' },
];

/** Accounts that others use, too. */
export const sharedCases: readonly LearnedCase[] = [
  ...waysOf('bucket', 'openai', true),
  ...waysOf('window', 'minute', true),
];

/** Upstreams that say less: only when to come back, or nothing at all. Nothing is promised for them. */
export const silentCases: readonly LearnedCase[] = (['retry-after', 'none'] as const).map((family) => ({
  kind: 'bucket',
  family,
  tokenCount: 'at the end',
  binding: 'requests',
}));

function waysOf(kind: AllowanceKind, family: HeaderFamily, others = false): readonly LearnedCase[] {
  return (['requests', 'tokens'] as const).flatMap((binding) =>
    (['at the end', 'reserved'] as const).map((tokenCount) => ({
      kind,
      family,
      tokenCount,
      binding,
      others,
    })),
  );
}

export interface LearnedResult {
  /** The share of the binding limit that was used. */
  readonly used: number;
  /** The share of calls that the upstream refused. */
  readonly refused: number;
  readonly calls: number;
}

/**
 * Some minutes of more requests than an upstream takes, which reports its limits and refuses what exceeds them. The two or
 * three minutes before them, in which the gateway learns, are not measured.
 */
export async function playLearned(
  seed: number,
  played: LearnedCase,
  measuredMinutes: number,
): Promise<LearnedResult> {
  const { kind, family, tokenCount, binding, others = false } = played;
  const offsetMs = (seed * 7_919) % minuteMs;
  const requests = new Allowance(kind, requestsPerMinute, minuteMs, offsetMs);
  const tokens = new Allowance(kind, tokensPerMinute, minuteMs, offsetMs);
  const clockMs = ((seed * 104_729) % 20_000) - 10_000;
  const upstream = new SimulatedUpstream({ requests, tokens, family, tokenCount, clockMs });
  const scene = new LimitersScene({
    seed,
    upstreams: { far: upstream },
    settings: {
      far: {
        maxInFlight: null,
        requestsPerMinute: null,
        tokensPerMinute: null,
        learnLimits: true,
        queue: 100,
        queueWaitMs: 600_000,
        models: new Map(),
      },
    },
    jitterMs: 100,
  });
  const outputCap = binding === 'requests' ? 60 : 160;
  const keepAsking = async (keyId: string): Promise<void> => {
    for (;;) {
      const input = Math.ceil((0.1 + 0.4 * scene.random()) * (outputCap / 2));
      const output = Math.ceil((0.2 + 0.8 * scene.random()) * outputCap);
      const headMs = 200 + 800 * scene.random();
      const call = { input, output, outputCap, headMs, totalMs: headMs + output * 20 };
      // Inputs are estimated by their bytes.
      await scene.send({
        keyId,
        upstreams: ['far'],
        expected: { input: input * 4, output: outputCap },
        call,
      });
    }
  };
  const useByOthers = (): void => {
    const { nowMs } = scene.time;
    if (requests.left(nowMs) >= 1 && tokens.left(nowMs) >= othersTokens) {
      requests.take(1, nowMs);
      tokens.take(othersTokens, nowMs);
    }
    scene.time.after(scene.random() * 2 * othersEveryMs, useByOthers);
  };
  if (others) useByOthers();
  for (let key = 0; key < keys; key++) void keepAsking(`key${key}`);
  // From the first window that begins after two minutes.
  const startMs = 3 * minuteMs - ((2 * minuteMs + offsetMs) % minuteMs);
  const endMs = startMs + measuredMinutes * minuteMs;
  await scene.time.run(() => scene.time.nowMs >= startMs);
  const allowance = binding === 'requests' ? requests : tokens;
  const takenBefore = allowance.taken;
  const refusedBefore = upstream.refused;
  const acceptedBefore = upstream.accepted;
  await scene.time.run(() => scene.time.nowMs >= endMs);
  const calls = upstream.accepted - acceptedBefore + upstream.refused - refusedBefore;
  return {
    used: (allowance.taken - takenBefore) / (allowance.limit * measuredMinutes),
    refused: (upstream.refused - refusedBefore) / calls,
    calls,
  };
}
