import type { StreamPart } from '../../api/event-stream.ts';

/** How many frames are kept; of more than these, the earliest are only counted. */
const maxFrames = 2_000;

/** The length from which a block of text goes on in another one, so that growing stays cheap. */
const blockLength = 400;

/** One part of an answer as it came. */
export interface Frame {
  readonly number: number;
  /** The time since the request was sent, and since the frame before, in milliseconds. */
  readonly atMs: number;
  readonly gapMs: number;
  /** `comment`, `chunk`, the name of an event, `[DONE]`, `body` or `unfinished`. */
  readonly kind: string;
  readonly text: string;
}

/** How a request ended; `null` while it runs. */
type Ending = 'complete' | 'stopped' | 'cut' | 'failed' | null;

/** A request that was sent, and what has come of its answer. */
export interface Run {
  readonly isStreamed: boolean;
  readonly ending: Ending;
  readonly status: number | null;
  readonly requestId: string | null;
  /** In USD, as the gateway wrote it. */
  readonly charge: string | null;
  readonly firstByteMs: number | null;
  readonly firstTextMs: number | null;
  readonly totalMs: number | null;
  readonly finish: string | null;
  readonly tokens: Tokens | null;
  readonly failure: Failure | null;
  /** The text, in pieces that only ever grow at the end. */
  readonly blocks: readonly string[];
  readonly frames: readonly Frame[];
  readonly frameCount: number;
}

/** Collects what comes of one answer. Times are milliseconds since the request was sent. */
export class Collector {
  #run: Run;
  readonly #blocks: string[] = [];
  readonly #frames: Frame[] = [];
  #count = 0;
  #lastMs = 0;
  #isWhole = false;

  constructor(isStreamed: boolean) {
    this.#run = { ...emptyRun, isStreamed };
  }

  /** The answer's head is here. */
  begin(status: number, headers: Pick<Headers, 'get'>, atMs: number): void {
    const requestId = headers.get('x-request-id');
    const charge = headers.get('x-textgate-charge');
    this.#run = { ...this.#run, status, requestId, charge, firstByteMs: atMs };
  }

  /** A part of a stream is here. */
  addPart({ type, name, text }: StreamPart, atMs: number): void {
    if (type === 'event') {
      this.#add(text === '[DONE]' ? text : (name ?? 'chunk'), text, atMs);
      this.#read(text, atMs);
      return;
    }
    this.#add(type, text, atMs);
    const charge = type === 'comment' ? /^x-textgate-charge: (\S+)$/.exec(text)?.[1] : undefined;
    if (charge !== undefined) this.#run = { ...this.#run, charge };
  }

  /** A whole answer is here. */
  addBody(text: string, atMs: number): void {
    this.#add('body', text, atMs);
    this.#read(text, null);
    this.#isWhole = true;
  }

  /** The request is over. `failure` is what kept it from its answer. */
  end(atMs: number, { isStopped, failure }: { isStopped: boolean; failure: Failure | null }): void {
    const found = this.#run.failure ?? failure;
    const isRefused = (this.#run.status ?? 0) >= 400;
    const ending = isStopped
      ? 'stopped'
      : found !== null || isRefused
        ? 'failed'
        : this.#isWhole
          ? 'complete'
          : 'cut';
    this.#run = { ...this.#run, ending, totalMs: atMs, failure: isStopped ? null : found };
  }

  /** All that is known, as values that do not change any more. */
  snapshot(): Run {
    return {
      ...this.#run,
      blocks: [...this.#blocks],
      frames: [...this.#frames],
      frameCount: this.#count,
    };
  }

  #add(kind: string, text: string, atMs: number): void {
    this.#count += 1;
    this.#frames.push({ number: this.#count, atMs, gapMs: atMs - this.#lastMs, kind, text });
    this.#lastMs = atMs;
    if (this.#frames.length > maxFrames) this.#frames.shift();
  }

  /** `atMs` is `null` for a whole body, whose text has no time of its own. */
  #read(data: string, atMs: number | null): void {
    const { text, finish, tokens, failure, isEnd } = readSaid(data);
    if (isEnd) this.#isWhole = true;
    if (text !== '') this.#addText(text);
    const run = this.#run;
    this.#run = {
      ...run,
      firstTextMs: run.firstTextMs ?? (text === '' ? null : atMs),
      finish: finish ?? run.finish,
      tokens: tokens ?? run.tokens,
      failure: failure ?? run.failure,
    };
  }

  #addText(text: string): void {
    const last = this.#blocks.at(-1);
    // A block ends where a space begins the next piece, so that no letter is apart from its accents.
    if (last === undefined || (last.length >= blockLength && /^\s/.test(text))) this.#blocks.push(text);
    else this.#blocks[this.#blocks.length - 1] = last + text;
  }
}

const emptyRun: Run = {
  isStreamed: false,
  ending: null,
  status: null,
  requestId: null,
  charge: null,
  firstByteMs: null,
  firstTextMs: null,
  totalMs: null,
  finish: null,
  tokens: null,
  failure: null,
  blocks: [],
  frames: [],
  frameCount: 0,
};

/** What one object of an answer says: a frame of a stream, or a whole body. */
interface Said {
  readonly text: string;
  readonly finish: string | null;
  readonly tokens: Tokens | null;
  readonly failure: Failure | null;
  /** Whether a stream is complete with it. */
  readonly isEnd: boolean;
}

interface Tokens {
  readonly input: number | null;
  readonly output: number | null;
}

/** An error of the gateway, with the provider's words if it has them. */
export interface Failure {
  readonly code: string | null;
  readonly message: string;
}

type Json = Readonly<Record<string, unknown>>;

const nothing: Said = { text: '', finish: null, tokens: null, failure: null, isEnd: false };

/** Reads an object of either protocol; what is not in it is left empty. */
function readSaid(data: string): Said {
  if (data === '[DONE]') return { ...nothing, isEnd: true };
  const body = parse(data);
  if (body === null) return nothing;
  if (isObject(body['error'])) return { ...nothing, failure: readFailure(body['error']) };
  const type = body['type'];
  if (typeof type === 'string') return readEvent(type, body);
  if (body['object'] === 'response') return readResponse(body, true);
  return readChat(body);
}

/** Reads an event of a stream of Responses. */
function readEvent(type: string, event: Json): Said {
  if (type === 'response.output_text.delta') return { ...nothing, text: textOf(event['delta']) };
  const isEnd = type === 'response.completed' || type === 'response.incomplete';
  if (isEnd || type === 'response.failed')
    return { ...readResponse(objectOf(event['response']), false), isEnd };
  return nothing;
}

/** Reads the object of Responses. In a stream its text was already said. */
function readResponse(response: Json, isWhole: boolean): Said {
  const reason = objectOf(response['incomplete_details'])['reason'];
  const error = response['error'];
  const parts = listOf(response['output']).flatMap((item) => listOf(item['content']));
  return {
    ...nothing,
    text: isWhole ? parts.map(({ text }) => textOf(text)).join('') : '',
    finish: typeof reason === 'string' ? reason : textOf(response['status']) || null,
    tokens: readTokens(response['usage'], 'input_tokens', 'output_tokens'),
    failure: isObject(error) ? readFailure(error) : null,
  };
}

/** Reads a whole answer of Chat Completions, or one chunk of it. */
function readChat(body: Json): Said {
  const [choice = {}] = listOf(body['choices']);
  const { content } = objectOf(choice['delta'] ?? choice['message']);
  return {
    ...nothing,
    text: textOf(content),
    finish: textOf(choice['finish_reason']) || null,
    tokens: readTokens(body['usage'], 'prompt_tokens', 'completion_tokens'),
  };
}

function readTokens(usage: unknown, input: string, output: string): Tokens | null {
  if (!isObject(usage)) return null;
  return { input: numberOf(usage[input]), output: numberOf(usage[output]) };
}

function readFailure(error: Json): Failure {
  const words = textOf(objectOf(error['upstream'])['message']);
  const message = textOf(error['message']);
  return {
    code: textOf(error['code']) || null,
    message: words === '' ? message : `${message} The provider says: ${words}`,
  };
}

function parse(data: string): Json | null {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
