import type {
  BodyPiece,
  UpstreamAnswer,
  UpstreamCall,
  UpstreamFault,
  Upstreams,
} from '../../../src/domain/ports/upstreams.ts';
import { readLimitHeaders } from '../../../src/protocol/upstream/limit-headers.ts';
import type { Target } from '../../../src/domain/upstreams/sent-request.ts';
import { bodyOf } from '../../support/body-of.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { allNames, goodNames, gridMs, policyBehaviours, textIn } from './behaviours.ts';
import type { Script } from './behaviours.ts';

const interrupted: UpstreamFault = { kind: 'fault', fault: 'interrupted' };

/** One call, as its upstream sees it. Times are on the monotonic clock. */
export interface SeenCall {
  /** The number of its request. */
  readonly request: number;
  readonly upstream: string;
  /** The model's name there; `null` for what is passed on. */
  readonly model: string | null;
  readonly behaviour: string;
  readonly isShadow: boolean;
  readonly isPassed: boolean;
  readonly sentMs: number;
  /** When it arrived; `null` if it never did. */
  arrivedMs: number | null;
  /** How many other calls for the same request were open when it was sent, and whether one of them had given text. */
  readonly beside: number;
  readonly isAfterText: boolean;
  /** When its text was handed over first. */
  textMs: number | null;
  /** The bytes that were handed over, their text, and the text that would be. */
  sent: string;
  text: string;
  readonly wholeText: string;
  /** What it reported, and whether that can be true; `null` as long as it did not. */
  usage: { readonly input: number; readonly output: number } | null;
  readonly usual: { readonly input: number; readonly output: number };
  /** Whether it said that its text is complete, and whether its body came to its proper end. */
  isWhole: boolean;
  isEnded: boolean;
  isAborted: boolean;
  status: number | null;
  /** When the gateway was done with it, and when it was over for the upstream. */
  endedMs: number | null;
  overMs: number | null;
}

type Kind = 'text' | 'shadow' | 'passed';

/** What an upstream is like for a while. */
interface Mood {
  readonly names: readonly string[];
}

/** Numbers from 0 up to 1. */
type Random = () => number;

/** Upstreams whose behaviour changes at random, and which note what they get. */
export class MoodyUpstreams implements Upstreams {
  readonly calls: SeenCall[] = [];
  /** Calls that are not over, by upstream, and the most of them that there were. */
  readonly open = new Map<string, Set<SeenCall>>();
  readonly mostOpen = new Map<string, number>();
  /** Until when each upstream asked for a pause: with a 503 of all models, else of one. */
  readonly #pausedUntilMs = new Map<string, number>();
  readonly #byRequest = new Map<number, SeenCall[]>();
  readonly #clock: FakeClock;
  readonly #random: Random;
  readonly #latestMs: number;
  readonly #reportsLimits: boolean;
  readonly #moods = new Map<string, Mood & { readonly untilMs: number }>();

  /** `latestMs` is how late calls arrive at most, and how late an upstream sees that its connection is closed. */
  constructor(clock: FakeClock, random: Random, latestMs: number, reportsLimits: boolean) {
    this.#clock = clock;
    this.#random = random;
    this.#latestMs = latestMs;
    this.#reportsLimits = reportsLimits;
  }

  callsOf(request: number): readonly SeenCall[] {
    return this.#byRequest.get(request) ?? [];
  }

  openAt(upstream: string): Set<SeenCall> {
    const known = this.open.get(upstream) ?? new Set();
    this.open.set(upstream, known);
    return known;
  }

  /** Until when a model, or all of an upstream, is not to be used. */
  pausedUntilMs({ upstream, model }: Target): number {
    const ofModel = this.#pausedUntilMs.get(JSON.stringify([upstream, model])) ?? 0;
    return Math.max(ofModel, this.#pausedUntilMs.get(upstream) ?? 0);
  }

  async call(
    { upstream, body, stream, leftMs, fresh, onSent }: UpstreamCall,
    signal: AbortSignal,
  ): Promise<UpstreamAnswer | UpstreamFault> {
    const asked = JSON.parse(body ?? '') as { model: string; max_tokens?: number };
    const request = Number(/request (\d+)\./.exec(body ?? '')?.[1]);
    const name = this.#behaviourNow(upstream, fresh);
    const call = this.#begin(
      { upstream, model: asked.model },
      name,
      request,
      asked.model === 'copy' ? 'shadow' : 'text',
      Math.min(60, asked.max_tokens ?? 60),
    );
    onSent?.();
    const { usual } = call;
    const script = await (policyBehaviours[name] ?? (() => ({ headMs: 0, head: interrupted, steps: [] })))({
      pieces: [`${call.wholeText.split(' ')[0] ?? ''} `, call.wholeText.split(' ')[1] ?? ''],
      usage: usual,
      isStream: stream,
      upTo: (most) => this.#upTo(most),
    });
    return this.#play(call, script, { leftMs }, signal);
  }

  /** A call of a path that is passed on; resolves with the status, or the fault. */
  async pass(
    request: number,
    upstream: string,
    signal: AbortSignal,
    onHead: (head: Pick<UpstreamAnswer, 'status' | 'retryAfterMs' | 'limits'>) => void,
  ): Promise<number | UpstreamFault> {
    const call = this.#begin({ upstream, model: null }, 'passes', request, 'passed', 0);
    const isGood = this.#random() < 0.7;
    const status = isGood ? 200 : ([429, 503, 400][this.#upTo(3)] ?? 429);
    const retryAfterMs = !isGood && this.#random() < 0.5 ? 2_000 : null;
    const answer = await this.#play(
      call,
      {
        headMs: gridMs * this.#upTo(50),
        head: { status, contentType: 'application/json', retryAfterMs },
        steps: [
          { afterMs: gridMs * this.#upTo(50), piece: '{}' },
          { afterMs: 0, piece: this.#random() < 0.8 ? null : { kind: 'fault', fault: 'broken' } },
        ],
      },
      { leftMs: 20_000 },
      signal,
    );
    if (answer.kind === 'fault') return answer;
    onHead(answer);
    for (let piece = await answer.read(); piece !== null; piece = await answer.read())
      if (!(piece instanceof Uint8Array)) return piece;
    return status;
  }

  #upTo(most: number): number {
    return Math.floor(this.#random() * most);
  }

  /** An upstream works for a while, fails in one way for a while, or does anything. */
  #behaviourNow(upstream: string, isFresh: boolean): string {
    const nowMs = this.#clock.monotonicMs();
    let mood = this.#moods.get(upstream);
    if (mood === undefined || mood.untilMs <= nowMs) {
      const drawn = this.#random();
      const names =
        drawn < 0.45
          ? goodNames
          : drawn < 0.65
            ? [...goodNames, ...allNames]
            : drawn < 0.8
              ? allNames
              : [allNames[this.#upTo(allNames.length)] ?? ''];
      mood = { names, untilMs: nowMs + 1_000 + this.#random() * 20_000 };
      this.#moods.set(upstream, mood);
    }
    const name = mood.names[this.#upTo(mood.names.length)] ?? '';
    return isFresh && name === 'finds its kept connection closed' ? 'answers at once' : name;
  }

  #begin(
    { upstream, model }: Target,
    behaviour: string,
    request: number,
    kind: Kind,
    mostOutput: number,
  ): SeenCall {
    const sentMs = this.#clock.monotonicMs();
    const others = kind === 'shadow' ? [] : this.callsOf(request).filter((other) => !other.isShadow);
    const number = this.calls.length;
    const call: SeenCall = {
      request,
      upstream,
      model,
      behaviour,
      isShadow: kind === 'shadow',
      isPassed: kind === 'passed',
      sentMs,
      arrivedMs: null,
      beside: others.filter(({ endedMs }) => endedMs === null).length,
      isAfterText: others.some(({ textMs, isAborted }) => textMs !== null && !isAborted),
      textMs: null,
      sent: '',
      text: '',
      wholeText: `call${number} end${number}`,
      usage: null,
      // No two calls of a request report the same.
      usual: { input: 20 + (number % 7), output: Math.max(1, mostOutput - (number % 11)) },
      isWhole: false,
      isEnded: false,
      isAborted: false,
      status: null,
      endedMs: null,
      overMs: null,
    };
    this.calls.push(call);
    this.#byRequest.set(request, [...this.callsOf(request), call]);
    this.openAt(upstream).add(call);
    return call;
  }

  async #play(
    call: SeenCall,
    { headMs, head, steps }: Script,
    { leftMs }: { readonly leftMs: number },
    signal: AbortSignal,
  ): Promise<UpstreamAnswer | UpstreamFault> {
    const deadlineMs = call.sentMs + leftMs;
    const cancelled = new AbortController();
    const whenOver: (() => void)[] = [];
    const over = (): void => {
      if (call.overMs !== null) return;
      call.overMs = this.#clock.monotonicMs();
      this.openAt(call.upstream).delete(call);
      for (const callback of whenOver) callback();
    };
    /** The gateway is done with it; `isSeen` is whether the upstream knows that at once. */
    const end = (isSeen: boolean): void => {
      if (call.endedMs !== null) return;
      call.endedMs = this.#clock.monotonicMs();
      cancelled.abort();
      if (isSeen || this.#latestMs === 0) over();
      else this.#clock.schedule(gridMs * this.#upTo(this.#latestMs / gridMs), over);
    };
    let hasHead = false;
    const abort = (): void => {
      call.isAborted = true;
      end(!hasHead || call.isPassed);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    const isReached = head !== interrupted && !('fault' in head && /unreachable|stale/.test(head.fault));
    if (isReached) this.#arrive(call);
    const waited = await this.#pause(headMs, deadlineMs, cancelled.signal);
    if (waited !== 'on') {
      end(true);
      return waited === 'late' ? { kind: 'fault', fault: 'total_timeout' } : interrupted;
    }
    if ('fault' in head) {
      end(true);
      return head;
    }
    hasHead = true;
    const nowMs = this.#clock.monotonicMs();
    call.status = head.status;
    if (head.retryAfterMs !== null) {
      const paused = head.status === 503 ? call.upstream : JSON.stringify([call.upstream, call.model]);
      const untilMs = Math.max(nowMs + head.retryAfterMs, this.#pausedUntilMs.get(paused) ?? 0);
      this.#pausedUntilMs.set(paused, untilMs);
    }
    const left = [...steps];
    const read = async (): Promise<BodyPiece> => {
      const { afterMs, piece } = left.shift() ?? { afterMs: Number.POSITIVE_INFINITY, piece: null };
      const went = await this.#pause(afterMs, deadlineMs, cancelled.signal);
      if (went === 'late') end(true);
      if (went !== 'on') return went === 'late' ? { kind: 'fault', fault: 'total_timeout' } : interrupted;
      if (typeof piece === 'string') {
        this.#note(call, piece);
        return Buffer.from(piece);
      }
      call.isEnded = piece === null;
      end(true);
      return piece;
    };
    return {
      ...head,
      kind: 'answer',
      ...bodyOf(read),
      limits: this.#reportsLimits ? this.#limitsOf(call.upstream) : null,
      release: () => end(false),
      whenOver: (callback) => (call.overMs === null ? void whenOver.push(callback) : callback()),
    };
  }

  /** A call arrives after a while, if it is still open. */
  #arrive(call: SeenCall): void {
    const arrive = (): void => {
      if (call.overMs !== null) return;
      call.arrivedMs = this.#clock.monotonicMs();
      const arrived = [...this.openAt(call.upstream)].filter(({ arrivedMs }) => arrivedMs !== null).length;
      this.mostOpen.set(call.upstream, Math.max(arrived, this.mostOpen.get(call.upstream) ?? 0));
    };
    if (this.#latestMs === 0) arrive();
    else this.#clock.schedule(gridMs * this.#upTo(this.#latestMs / gridMs), arrive);
  }

  /** Notes what is handed over; a piece may end in the middle of an event. */
  #note(call: SeenCall, piece: string): void {
    call.sent += piece;
    call.text = textIn(call.sent);
    call.isWhole ||= call.sent.includes('"finish_reason":"stop"');
    // The text of a whole body without an end is not used.
    const isText =
      call.text !== '' && (call.isWhole || call.sent.startsWith('data:') || call.sent.startsWith(':'));
    if (isText) call.textMs ??= this.#clock.monotonicMs();
    const { input, output } = call.usual;
    if (call.sent.includes(`"prompt_tokens":${input},"completion_tokens":${output}`)) call.usage = call.usual;
  }

  #limitsOf(upstream: string): UpstreamAnswer['limits'] {
    const nowMs = this.#clock.monotonicMs();
    const used = this.calls.filter(
      (call) => call.upstream === upstream && call.sentMs > nowMs - 60_000,
    ).length;
    const headers: Readonly<Record<string, string>> = {
      'x-ratelimit-limit-requests': '200',
      'x-ratelimit-remaining-requests': String(Math.max(0, 200 - used)),
      'x-ratelimit-reset-requests': '60s',
    };
    return readLimitHeaders((name) => headers[name]);
  }

  /** Resolves with whether the call goes on, was stopped, or has no time left. */
  #pause(durationMs: number, deadlineMs: number, stopped: AbortSignal): Promise<'on' | 'late' | 'stopped'> {
    if (stopped.aborted) return Promise.resolve('stopped');
    const leftMs = deadlineMs - this.#clock.monotonicMs();
    if (durationMs === 0 && leftMs > 0) return Promise.resolve('on');
    return new Promise((resolve) => {
      const isLate = leftMs <= durationMs;
      const stop = (): void => {
        cancel();
        resolve('stopped');
      };
      const cancel = this.#clock.schedule(Math.max(0, Math.min(durationMs, leftMs)), () => {
        stopped.removeEventListener('abort', stop);
        resolve(isLate ? 'late' : 'on');
      });
      stopped.addEventListener('abort', stop);
    });
  }
}
