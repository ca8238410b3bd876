import { orderFor } from '../../../src/domain/routing/policies.ts';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';
import type { Route } from '../../../src/domain/routing.ts';
import { localRoute } from '../../support/model-source.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { VirtualTime } from '../virtual-time.ts';
import { exponential, logNormal } from '../distributions.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { PolicyName } from '../../../src/domain/routing/policy-names.ts';

/** Plays conversations over replicas of one model, each with a cache of prefixes, and counts what is read from the caches. */

/** What chooses the replica: a policy, or an oracle that sees all caches. */
export type Chooser = PolicyName | 'oracle';

export interface ConversationPlan {
  readonly seed: number;
  readonly replicas: number;
  /** How many conversations there are. */
  readonly conversations: number;
  /** How many of them begin in a second, on average. */
  readonly perSecond: number;
  /** The size of each replica's cache, in tokens. */
  readonly cacheTokens: number;
}

export interface ConversationFigures {
  readonly requests: number;
  /** The share of the input tokens that were read from a cache. */
  readonly cachedShare: number;
  /** The most requests in progress at a replica as a multiple of their mean, where it is over the bound of whole requests. */
  readonly overBound: number;
  /** The tokens that the busiest replica served, as a multiple of the mean. */
  readonly loadRatio: number;
}

/** The most in progress at a replica, as a multiple of the mean: rounded up to whole requests. */
const loadBound = 1.25;

/** The lengths of the instructions of four applications, in tokens. */
const instructions = [300, 800, 1_500, 4_000];

const meanThinkMs = 20_000;
const msPerUncachedToken = 0.4;
const msPerOutputToken = 10;

interface Replica {
  readonly route: Route;
  readonly measure: RouteMeasure;
  readonly cache: PrefixCache;
  servedTokens: number;
}

interface Conversation {
  readonly name: string;
  readonly application: number;
  readonly turns: number;
  /** All tokens so far, without the instructions. */
  tokens: number;
}

/** Plays all conversations; the same seed has the same conversations for every chooser. */
export async function playConversations(
  plan: ConversationPlan,
  chooser: Chooser,
): Promise<ConversationFigures> {
  const time = new VirtualTime();
  const random = seededNumbers(plan.seed);
  const drawn = seededNumbers(plan.seed + 1);
  const replicas = Array.from({ length: plan.replicas }, (_, index) => openReplica(index, plan.cacheTokens));
  const sums = { requests: 0, input: 0, cached: 0, overBound: 0 };

  const ask = (conversation: Conversation, turn: number): void => {
    const prompt = logNormal(random, 80, 1);
    const answer = logNormal(random, 200, 0.7);
    const thinkMs = exponential(random, meanThinkMs);
    const replica = choose(chooser, replicas, conversation, time.nowMs, drawn);
    sums.overBound = Math.max(sums.overBound, overBoundAt(replica, replicas));
    const [fixed = 0] = [instructions[conversation.application]];
    const input = fixed + conversation.tokens + prompt;
    const cached = replica.cache.read(conversation.name, conversation.application, fixed);
    conversation.tokens += prompt + answer;
    replica.cache.write(conversation.name, conversation.tokens, conversation.application, fixed);
    replica.servedTokens += input - cached + answer;
    sums.requests++;
    sums.input += input;
    sums.cached += cached;
    const attempt = replica.measure.began(time.nowMs);
    const firstMs = (input - cached) * msPerUncachedToken;
    time.after(firstMs, () => attempt.opened(time.nowMs));
    time.after(firstMs + answer * msPerOutputToken, () => {
      attempt.ended(time.nowMs, false);
      if (turn < conversation.turns) time.after(thinkMs, () => ask(conversation, turn + 1));
    });
  };

  let beginsMs = 0;
  for (let number = 0; number < plan.conversations; number++) {
    beginsMs += exponential(random, 1_000 / plan.perSecond);
    const turns = 1 + Math.min(40, Math.floor(exponential(random, 6)));
    const application = Math.floor(random() * instructions.length);
    const conversation = { name: `conversation ${number}`, application, turns, tokens: 0 };
    time.after(beginsMs, () => ask(conversation, 1));
  }
  await time.run(() => false);
  const served = replicas.map(({ servedTokens }) => servedTokens);
  const mean = served.reduce((sum, tokens) => sum + tokens, 0) / served.length;
  return {
    requests: sums.requests,
    cachedShare: sums.cached / sums.input,
    overBound: sums.overBound,
    loadRatio: Math.max(...served) / mean,
  };
}

function openReplica(index: number, cacheTokens: number): Replica {
  const measure = new RouteMeasure();
  const route = { ...localRoute, upstream: `replica ${index}`, measure };
  return { route, measure, cache: new PrefixCache(cacheTokens), servedTokens: 0 };
}

function choose(
  chooser: Chooser,
  replicas: readonly Replica[],
  conversation: Conversation,
  nowMs: number,
  random: () => number,
): Replica {
  if (chooser === 'oracle') return nearestCache(replicas, conversation);
  const turns = [
    { role: 'system', text: `instructions of ${conversation.application}` },
    { role: 'user', text: conversation.name },
  ] as const;
  const [first] = orderFor(chooser, {
    model: { id: 'small', routes: replicas.map(({ route }) => route), holdTokens: 1 },
    request: { turns, maxOutputTokens: null, promptCacheKey: null },
    keyId: 'key_1',
    nowMs,
    random,
    availability: () => 'available',
  });
  const chosen = replicas.find(({ route }) => route === first);
  if (chosen === undefined) throw new Error('no replica was chosen');
  return chosen;
}

/** The replica that has most of the conversation, of those within the bound; the least busy one of equals. */
function nearestCache(replicas: readonly Replica[], { name, application }: Conversation): Replica {
  const fixed = instructions[application] ?? 0;
  const ranked = replicas
    .filter((replica) => overBoundAt(replica, replicas) === 0)
    .map((replica) => ({ replica, cached: replica.cache.holds(name, application, fixed) }))
    .toSorted(
      (one, other) =>
        other.cached - one.cached || one.replica.measure.inFlight - other.replica.measure.inFlight,
    );
  const [best] = ranked;
  if (best === undefined) throw new Error('all replicas are over the bound');
  return best.replica;
}

/** By how much one more request exceeds the bound at a replica, as a multiple of the mean; 0 if it does not. */
function overBoundAt({ measure }: Replica, replicas: readonly Replica[]): number {
  const total = replicas.reduce((sum, other) => sum + other.measure.inFlight, 1);
  const mean = total / replicas.length;
  return measure.inFlight + 1 <= Math.ceil(loadBound * mean) ? 0 : (measure.inFlight + 1) / mean;
}
