import { setTimeout as wait } from 'node:timers/promises';
import { askQuestion } from '../numbered-client.ts';
import type { NumberedAnswer } from '../numbered-client.ts';
import type { Cluster, ClusterKey } from './cluster.ts';

interface LoadOptions {
  readonly keys: readonly ClusterKey[];
  readonly clients: number;
  readonly random: () => number;
  /** The longest pause between two questions of a client, in milliseconds. */
  readonly pauseMs?: number;
  /** Is given every answer. */
  readonly onAnswer?: (answer: NumberedAnswer) => void;
  /** Whether a client asks the other gateway at once when one does not serve it. */
  readonly retries?: boolean;
}

/** How often each kind of answer came. */
type AnswerCounts = Map<string, number>;

/** Questions that are asked until it is stopped. */
export interface Load {
  readonly counts: AnswerCounts;
  /** Ends it when the answers that are under way have come. */
  stop(): Promise<void>;
}

/** Asks questions of random keys at random gateways, streamed and whole, and records the answers that are whole. */
export function startLoad(
  cluster: Cluster,
  { keys, clients, random, pauseMs = 60, onAnswer, retries = false }: LoadOptions,
): Load {
  const counts: AnswerCounts = new Map();
  const stopped = new AbortController();
  const work = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const key = keys[Math.floor(random() * keys.length)];
      if (key === undefined) throw new Error('there is no key to ask with');
      const first = Math.floor(random() * cluster.nodes.length);
      const answer = await ask(cluster, key, random() < 0.5, first);
      note(answer, counts, onAnswer);
      if (retries && !answer.isWhole && isUnserved(answer)) {
        note(await ask(cluster, key, random() < 0.5, first + 1), counts, onAnswer);
      }
      await wait(random() * pauseMs);
    }
  };
  const working = Promise.all(Array.from({ length: clients }, work));
  return {
    counts,
    async stop() {
      stopped.abort();
      await working;
    },
  };
}

/** Asks one question at a gateway, and records its answer if it is whole. */
export async function ask(
  cluster: Cluster,
  key: ClusterKey,
  stream: boolean,
  node: number,
): Promise<NumberedAnswer> {
  const url = cluster.nodes[node % cluster.nodes.length]?.url ?? '';
  const answer = await askQuestion(url, key, stream);
  if (answer.isWhole) cluster.acknowledged.set(answer.requestId, answer.number);
  return answer;
}

/** How long a question may take to reach the upstream, in milliseconds, and how often it is looked whether it did. */
const reachMs = 30_000;
const lookMs = 10;

/** Asks a question of a key of which nothing runs until the upstream serves it; `answer` resolves with its end. */
export async function askUntilItRuns(
  cluster: Cluster,
  key: ClusterKey,
  node: number,
): Promise<{ readonly answer: Promise<NumberedAnswer> }> {
  const giveUpMs = performance.now() + reachMs;
  let last = '';
  while (performance.now() < giveUpMs) {
    const answer = ask(cluster, key, true, node);
    const refused = answer.then(kindOf);
    let kind: string | null = null;
    while (kind === null) {
      kind = await Promise.race([refused, wait(lookMs, null)]);
      if (cluster.upstream.running(key.number) > 0) return { answer };
    }
    last = kind;
    await wait(10 * lookMs);
  }
  throw new Error(`a question did not reach the upstream: ${last}`);
}

/** Whether another gateway may be asked the same: this one was not there, or ends. */
function isUnserved({ status, code }: NumberedAnswer): boolean {
  return status === 0 || code === 'draining';
}

function note(answer: NumberedAnswer, counts: AnswerCounts, onAnswer: LoadOptions['onAnswer']): void {
  const kind = kindOf(answer);
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
  onAnswer?.(answer);
}

/** An answer in a word: `whole`, `cut`, `no answer`, or the code of its error. */
export function kindOf({ isWhole, status, code }: NumberedAnswer): string {
  if (isWhole) return 'whole';
  if (status === 0) return 'no answer';
  return status === 200 ? 'cut' : (code ?? String(status));
}

/** Counts as text: `whole 12, draining 1`. */
export function describeCounts(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none';
}
