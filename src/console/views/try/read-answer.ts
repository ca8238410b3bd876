/** What one object of an answer says: a frame of a stream, or a whole body. */
export interface Said {
  readonly text: string;
  readonly finish: string | null;
  readonly tokens: Tokens | null;
  readonly failure: Failure | null;
  /** Whether a stream is complete with it. */
  readonly isEnd: boolean;
}

export interface Tokens {
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
export function readSaid(data: string): Said {
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
