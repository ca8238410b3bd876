import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { askQuestion } from '../../chaos/numbered-client.ts';
import type { Acknowledged, NumberedAnswer } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

const runs = 100;
/** Gateways at a time: more would measure the cores. */
const atATime = 2;
const clientsPerRun = 8;
/** How long a gateway lets its answers end, and how long the two kinds of answers take, in milliseconds. */
const drainMs = 500;
const shortMs = 150;
const longMs = 5_000;
/** The longest time between the first request and the signal, in milliseconds. */
const maxQuietMs = 300;
/** How long a process may take to end after its drain, in milliseconds. */
const maxExitMs = 60_000;

export const section: Section = {
  name: 'drain',
  title: 'SIGTERM under streams',
  about:
    `A gateway with ${clientsPerRun} clients gets SIGTERM at a random moment; half of the answers outlast its drain time. Each ` +
    'client must see a whole answer with its end, or a failure that can’t be taken for one; the process exits with 0 in ' +
    'time, no record is left open, and what was received whole is charged once.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startNumberedUpstream({
      answerMs: (number) => (number % 2 === 0 ? shortMs : longMs),
    });
    const faults: string[] = [];
    const endings = { whole: 0, 'broken off': 0, refused: 0, unanswered: 0 };
    let honest = 0;
    const moments = Array.from({ length: Math.ceil(runs * scale) }, () => random() * maxQuietMs);

    await forEachOf(moments, atATime, async (moment, index) => {
      const found = await drainOnce(upstream, moment);
      for (const answer of found.answers) endings[endingOf(answer)]++;
      if (found.faults.length === 0) honest++;
      for (const fault of found.faults)
        faults.push(`run ${index}, SIGTERM after ${moment.toFixed(0)} ms: ${fault}`);
      if (index % 20 === 19) log(`${index + 1} runs`);
    });
    upstream.close();
    return {
      cases: moments.length,
      facts: [
        ['honest runs', `${honest} of ${moments.length}`],
        ['answers', Object.values(endings).reduce((sum, count) => sum + count, 0)],
        ...Object.entries(endings).map(([name, count]) => [`of them ${name}`, count] as const),
      ],
      faults,
    };
  },
};

async function drainOnce(upstream: Awaited<ReturnType<typeof startNumberedUpstream>>, moment: number) {
  const subject = await startSubject({
    name: 'drain',
    upstreamUrl: upstream.url,
    server: { drain: `${drainMs}ms` },
  });
  const { child, url } = subject.served;
  const secret = { secret: subject.key, number: 0 };
  const over = new AbortController();
  const answers: NumberedAnswer[] = [];
  const clients = Array.from({ length: clientsPerRun }, async (_, client) => {
    while (!over.signal.aborted) {
      const answer = await askQuestion(url, secret, client % 4 !== 0);
      answers.push(answer);
      if (answer.status === 0 || answer.status === 503) return;
    }
  });
  await wait(moment);
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), maxExitMs);
  await once(child, 'exit');
  clearTimeout(late);
  over.abort();
  await Promise.all(clients);

  const acknowledged: Acknowledged = new Map(
    answers.filter(({ isWhole }) => isWhole).map(({ requestId, number }) => [requestId, number]),
  );
  const dishonest = answers.filter((answer) => endingOf(answer) === 'broken off' && answer.fault === null);
  const faults = [
    ...dishonest.map(({ number }) => `answer ${number} ended properly without its end`),
    ...(await subject.finish(acknowledged, upstream.served)),
  ];
  return { answers, faults };
}

function endingOf({ isWhole, status }: NumberedAnswer): 'whole' | 'broken off' | 'refused' | 'unanswered' {
  if (isWhole) return 'whole';
  if (status === 0) return 'unanswered';
  return status === 200 ? 'broken off' : 'refused';
}
