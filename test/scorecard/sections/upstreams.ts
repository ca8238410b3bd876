import { configuredPrice } from '../../chaos/numbered-price.ts';
import { readAnswerBody } from '../../support/client-answer.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { hostileAnswers, startHostileUpstream } from '../hostile-answers.ts';
import type { HostileUpstream } from '../hostile-answers.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

/** How many requests run at a time. */
const atATime = 8;
/** How long the upstream may take with the parts of an answer: nothing of this needs a slow machine to be right. */
const timeouts = { connect: '2s', firstByte: '1s', idle: '1s', total: '4s' };
const upstreamKey = 'sk-hostile-upstream-key-0123456789';

/** How clients ask, and what they take for a whole answer. */
const forms = {
  'chat, whole': { path: '/v1/chat/completions', protocol: 'chat', stream: false },
  'chat, streamed': { path: '/v1/chat/completions', protocol: 'chat', stream: true },
  'Responses, streamed': { path: '/v1/responses', protocol: 'responses', stream: true },
  passthrough: null,
} as const;
type Form = keyof typeof forms;

/** What a client has seen of an answer. */
interface Seen {
  readonly status: number;
  readonly isWhole: boolean;
  readonly text: string;
}

export const section: Section = {
  name: 'upstreams',
  title: 'Hostile upstreams',
  about:
    'Upstreams that fail, lie and waste time in every way of a table, asked for whole answers, for streams of both protocols, and by a path that is passed on. ' +
    'No failure may be shown as a whole answer, no redirect be followed, nothing of the upstream’s key or address be shown, no call be made again after text; ' +
    'the process must live on, nothing stay open, and the ledger must add up.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startHostileUpstream(upstreamKey);
    const subject = await startSubject({
      name: 'upstreams',
      upstreamUrl: `${upstream.origin}/v1`,
      more: configOf(upstream.origin),
    });
    const { served, key } = subject;
    const names = Object.keys(hostileAnswers);
    const cases = names
      .flatMap((name) => (Object.keys(forms) as Form[]).map((form) => ({ name, form })))
      .flatMap((each) => Array.from({ length: Math.ceil(scale) }, () => ({ ...each, order: random() })))
      .toSorted((a, b) => a.order - b.order);
    log(`${names.length} behaviours, ${cases.length} requests`);
    const faults: string[] = [];
    const statuses = new Map<number, number>();
    let next = 0;
    const work = async (): Promise<void> => {
      for (let each = cases[next++]; each !== undefined; each = cases[next++]) {
        const { name, form } = each;
        const seen = await ask(served.url, key, name, form).catch(() => brokenOff);
        statuses.set(seen.status, (statuses.get(seen.status) ?? 0) + 1);
        const mayBeWhole = form === 'passthrough' && hostileAnswers[name]?.isWholeHttp === true;
        if (seen.isWhole && !mayBeWhole) faults.push(`${name} was shown whole (${form}, ${seen.status})`);
        if (mentions(seen.text, upstream)) faults.push(`${name}: its key or address was shown (${form})`);
      }
    };
    await Promise.all(Array.from({ length: atATime }, work));
    for (const [name, { hasText }] of Object.entries(hostileAnswers)) {
      const most = Object.keys(forms).length * Math.ceil(scale);
      if (hasText === true && (upstream.asked.get(name) ?? 0) > most)
        faults.push(`${name} was asked again after its first text`);
    }
    if (upstream.followed > 0) faults.push(`${upstream.followed} redirects were followed`);
    const readiness = await served.readiness();
    if (readiness !== 200) faults.push(`the process is not ready afterwards (${readiness})`);
    faults.push(...(await subject.finish()));
    upstream.close();
    return {
      cases: cases.length,
      facts: [
        ['behaviours', names.length],
        ['forms of requests', Object.keys(forms).length],
        [
          'answers by status',
          [...statuses]
            .toSorted(([a], [b]) => a - b)
            .map(([status, count]) => `${status || 'broken'}: ${count}`)
            .join(', '),
        ],
        ['redirects followed', upstream.followed],
      ],
      faults,
    };
  },
};

function configOf(origin: string): object {
  const names = Object.keys(hostileAnswers);
  const upstream = (url: string): object => ({ url, apiKey: upstreamKey, timeouts });
  return {
    upstreams: Object.fromEntries(names.map((name) => [name, upstream(`${origin}/${name}/v1`)])),
    models: Object.fromEntries(
      names.map((name) => [name, { routes: [{ upstream: name, model: 'm' }], price: configuredPrice }]),
    ),
    passthrough: names.map((name) => ({
      path: `/${name}/pass`,
      upstream: name,
      price: { request: '0.001' },
    })),
  };
}

const brokenOff: Seen = { status: 0, isWhole: false, text: '' };

async function ask(url: string, key: string, name: string, form: Form): Promise<Seen> {
  const asked = forms[form];
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const question = { messages: [{ role: 'user', content: 'x' }] };
  const body =
    asked === null
      ? {}
      : { model: name, stream: asked.stream, ...(asked.protocol === 'chat' ? question : { input: 'x' }) };
  const response = await fetch(url + (asked?.path ?? `/${name}/pass`), {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    redirect: 'manual',
  });
  const { status } = response;
  const { text, isComplete } = await readAll(response);
  if (asked === null) return { status, isWhole: isComplete && !isOwnError(text), text };
  const { ending } = readAnswerBody(asked.protocol, asked.stream && status === 200, text);
  return { status, isWhole: status === 200 && ending !== 'failure', text };
}

/** A body as far as it arrives: a broken connection is a way to show a failure. */
async function readAll(response: Response): Promise<{ readonly text: string; readonly isComplete: boolean }> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
    return { text, isComplete: true };
  } catch {
    return { text, isComplete: false };
  }
}

/** Whether a body is an error of the gateway's own, in the form that is documented. */
function isOwnError(text: string): boolean {
  return /^\{"error":\{"message":.*"code":"[a-z_]+"/.test(text);
}

function mentions(text: string, { origin }: HostileUpstream): boolean {
  return text.includes(upstreamKey) || text.includes(new URL(origin).host);
}
