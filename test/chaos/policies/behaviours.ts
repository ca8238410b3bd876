import type { UpstreamFault } from '../../../src/domain/ports/upstreams.ts';
import { chatFrames } from '../../support/scripted-upstream.ts';
import { behaviours } from '../../support/upstream-behaviours.ts';

/** What a call is answered with: its own text and its own usage, so that each answer can be told from all others. */
interface AnswerTerms {
  readonly pieces: readonly [string, string];
  readonly usage: { readonly input: number; readonly output: number };
  /** Whether a stream was asked for. */
  readonly isStream: boolean;
  /** A whole number from 0 up to a bound. */
  readonly upTo: (most: number) => number;
}

/** A part of an answer, and how long after the one before it is handed over. */
interface Step {
  readonly afterMs: number;
  readonly piece: string | null | UpstreamFault;
}

/** An answer: its head or a fault in its place, and its body, which is silent after its last step. */
export interface Script {
  readonly headMs: number;
  readonly head:
    | UpstreamFault
    | { readonly status: number; readonly contentType: string; readonly retryAfterMs: number | null };
  readonly steps: readonly Step[];
}

type Behaviour = (terms: AnswerTerms) => Script | Promise<Script>;

/** Times are multiples of this, in milliseconds, so that many things happen at the same moment. */
export const gridMs = 10;

const template = chatFrames(['one ', 'two']);
const usualUsage = '"prompt_tokens":11,"completion_tokens":7,"total_tokens":18';
const ok = { status: 200, contentType: 'text/event-stream', retryAfterMs: null };
const comment = ': wait\n\n';
const error = '{"error":{"message":"no"}}';

function framesOf(
  { pieces, usage: { input, output } }: AnswerTerms,
  reported: string | null = null,
): string[] {
  const said = `"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${input + output}`;
  return template.map((frame) =>
    frame
      .replace('"one "', JSON.stringify(pieces[0]))
      .replace('"two"', JSON.stringify(pieces[1]))
      .replace(usualUsage, reported ?? said),
  );
}

const fault = (name: UpstreamFault['fault']): UpstreamFault => ({ kind: 'fault', fault: name });
const after = (afterMs: number, ...pieces: readonly Step['piece'][]): Step[] =>
  pieces.map((piece) => ({ afterMs, piece }));
/** A random time up to a bound, on the grid. */
const some = ({ upTo }: AnswerTerms, mostMs: number): number => gridMs * upTo(mostMs / gridMs);

/** A good answer: `opening` comes before its first text, and `usage` in place of its own. */
function good(
  terms: AnswerTerms,
  {
    headMs = some(terms, 300),
    opening = [] as Step[],
    betweenMs = some(terms, 200),
    usage = null as string | null,
  } = {},
): Script {
  if (!terms.isStream) return whole(terms, headMs + betweenMs);
  const [role = '', ...rest] = framesOf(terms, usage);
  return {
    headMs,
    head: ok,
    steps: [...after(0, role), ...opening, ...after(betweenMs, ...rest), ...after(0, null)],
  };
}

function whole(terms: AnswerTerms, headMs: number): Script {
  const { pieces, usage } = terms;
  const body = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: pieces.join('') }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
    },
  });
  return { headMs, head: { ...ok, contentType: 'application/json' }, steps: after(0, body, null) };
}

const refusal = (status: number, retryAfterMs: number | null, terms: AnswerTerms): Script => ({
  headMs: some(terms, 100),
  head: { status, contentType: 'application/json', retryAfterMs },
  steps: after(0, error, null),
});

/** One of the behaviours that tests of the pipeline share, at some pace. */
function shared(name: string): Behaviour {
  return async (terms) => {
    const played = behaviours[name]?.play() ?? fault('unreachable');
    const headMs = some(terms, 1_000);
    if (played.kind === 'fault') return { headMs, head: played, steps: [] };
    const betweenMs = some(terms, 500);
    const steps: Step[] = [];
    for (let isOver = false; !isOver;) {
      const piece = await played.read();
      isOver = !(piece instanceof Uint8Array);
      steps.push({
        afterMs: betweenMs,
        piece: piece instanceof Uint8Array ? Buffer.from(piece).toString() : piece,
      });
    }
    const { status, contentType, retryAfterMs } = played;
    return { headMs, head: { status, contentType, retryAfterMs }, steps };
  };
}

/** Answers that are whole. */
const goodOnes: Readonly<Record<string, Behaviour>> = {
  'answers at once': (terms) => good(terms, { headMs: 0, betweenMs: 0 }),
  'answers in pieces': (terms) => good(terms),
  'is slow to its head': (terms) => good(terms, { headMs: 1_000 + some(terms, 4_000) }),
  'is slow to its first text': (terms) => good(terms, { betweenMs: 500 + some(terms, 3_000) }),
  'sends roles for long': (terms) =>
    good(terms, { opening: after(400, ...Array.from({ length: 8 }, () => template[0] ?? '')) }),
  'sends comments for long': (terms) => good(terms, { opening: after(400, ...Array(8).fill(comment)) }),
  drips: (terms) => {
    const { headMs, head, steps } = good(terms, { betweenMs: 0 });
    const letters = steps.flatMap(({ piece }) =>
      typeof piece === 'string'
        ? (piece.match(/[^]{1,60}/g) ?? []).map((part) => ({ afterMs: 20, piece: part }))
        : [],
    );
    return { headMs, head, steps: [...letters, ...after(0, null)] };
  },
  'answers whole': (terms) => whole(terms, some(terms, 2_000)),
  'reports no usage': (terms) =>
    good(terms, { usage: '"prompt_tokens":0,"completion_tokens":0,"total_tokens":0' }),
  'reports impossible usage': (terms) =>
    good(terms, {
      usage: '"prompt_tokens":999999999,"completion_tokens":999999999,"total_tokens":1999999998',
    }),
};

const badOnes: Readonly<Record<string, Behaviour>> = {
  ...Object.fromEntries(
    Object.entries(behaviours)
      .filter(([, { means }]) => means !== 'good')
      .map(([name]) => [name, shared(name)]),
  ),
  'answers 429 with retry-after': (terms) => refusal(429, 1_000 * (1 + terms.upTo(15)), terms),
  'answers 503 with retry-after': (terms) => refusal(503, 1_000 * (1 + terms.upTo(15)), terms),
  'resets before its head': (terms) => ({ headMs: some(terms, 300), head: fault('broken'), steps: [] }),
  'finds its kept connection closed': () => ({ headMs: 0, head: fault('stale'), steps: [] }),
  hangs: () => ({ headMs: Number.POSITIVE_INFINITY, head: fault('broken'), steps: [] }),
  'hangs after its head': () => ({ headMs: 100, head: ok, steps: [] }),
  'hangs in its text': (terms) => ({
    headMs: 100,
    head: ok,
    steps: after(50, ...framesOf(terms).slice(0, 2)),
  }),
  'sends comments until its time is up': () => ({
    headMs: 0,
    head: ok,
    steps: after(500, ...Array(200).fill(comment)),
  }),
  'is cut in its text': (terms) => ({
    headMs: 50,
    head: ok,
    steps: [...after(50, ...framesOf(terms).slice(0, 2)), ...after(50, fault('broken'))],
  }),
  'ends after its text without an end': (terms) => ({
    headMs: 50,
    head: ok,
    steps: after(50, ...framesOf(terms).slice(0, 3), null),
  }),
};

/** Everything that an upstream may do, by name. */
export const policyBehaviours: Readonly<Record<string, Behaviour>> = { ...goodOnes, ...badOnes };

export const goodNames: readonly string[] = Object.keys(goodOnes);
export const allNames: readonly string[] = Object.keys(policyBehaviours);

/** The text in a part of an answer, as clients get it. */
export function textIn(piece: string): string {
  return [...piece.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)]
    .map(([, text = '""']) => JSON.parse(text))
    .join('');
}
