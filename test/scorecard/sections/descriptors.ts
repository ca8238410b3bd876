import { get } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { askNumber } from '../../chaos/numbered-client.ts';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { publicKinds } from '../request-kinds.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';
import type { Subject } from '../subject.ts';

const maxOpenFiles = 64;
const connections = 200;
/** How long a flood is held open, and how long the service may take to answer again behind it, in milliseconds. */
const holdMs = 1_500;
const maxRecoveryMs = 15_000;
const answerMs = 300;
/** How long a probe may take, in milliseconds. */
const probeMs = 1_000;

interface Flood {
  readonly name: string;
  readonly listener: 'public' | 'admin';
  readonly bytes: (key: string) => string;
  /** Whether the admin probe must answer while it lasts: it has room of its own, but not against a flood of itself. */
  readonly isProbed: boolean;
}

const chatOf = (key: string, name: string): string =>
  publicKinds(key).find((kind) => kind.name === name)?.bytes ?? '';

const floods: readonly Flood[] = [
  { name: 'silent connections', listener: 'public', bytes: () => '', isProbed: true },
  {
    name: 'half a head',
    listener: 'public',
    bytes: () => 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n',
    isProbed: true,
  },
  {
    name: 'half a body',
    listener: 'public',
    bytes: (key) => chatOf(key, 'a chat, whole').slice(0, -5),
    isProbed: true,
  },
  {
    name: 'streams with a key',
    listener: 'public',
    bytes: (key) => chatOf(key, 'a chat, streamed'),
    isProbed: true,
  },
  {
    name: 'answers with a key',
    listener: 'public',
    bytes: (key) => chatOf(key, 'a chat, whole'),
    isProbed: true,
  },
  { name: 'silent connections to the admin listener', listener: 'admin', bytes: () => '', isProbed: false },
];

export const section: Section = {
  name: 'descriptors',
  title: `A process with ${maxOpenFiles} descriptors`,
  about:
    `Floods of ${connections} connections of each kind against a gateway with \`ulimit -n ${maxOpenFiles}\`. The process ` +
    'lives on, the probe of the admin listener answers while the public listener is flooded, a client is served again ' +
    'afterwards, and the ledger adds up.',
  async run({ scale, log }) {
    const upstream = await startNumberedUpstream({ answerMs: () => answerMs });
    const subject = await startSubject({ name: 'descriptors', upstreamUrl: upstream.url, maxOpenFiles });
    const faults: string[] = [];
    const acknowledged: Acknowledged = new Map();
    const count = Math.ceil(connections * scale);
    let [probes, unanswered, closed, slowestMs] = [0, 0, 0, 0];

    for (const flood of floods) {
      const sockets = Array.from({ length: count }, () => open(subject, flood));
      const startMs = performance.now();
      while (performance.now() - startMs < holdMs) {
        const status = await probe(subject);
        if (flood.isProbed) {
          probes++;
          if (status !== 200) unanswered++;
        }
        await wait(100);
      }
      closed += sockets.filter(({ destroyed }) => destroyed).length;
      for (const socket of sockets) socket.destroy();
      const recoveryMs = await recover(subject, acknowledged);
      slowestMs = Math.max(slowestMs, recoveryMs);
      if (recoveryMs > maxRecoveryMs)
        faults.push(`after ${flood.name} no client was served within ${maxRecoveryMs} ms`);
      log(`${flood.name}: served again after ${Math.round(recoveryMs)} ms`);
    }
    if (unanswered > 0) faults.push(`${unanswered} of ${probes} probes of the admin listener got no 200`);
    faults.push(...(await subject.finish(acknowledged, upstream.served)));
    upstream.close();
    return {
      cases: floods.length * count,
      facts: [
        ['floods', floods.length],
        ['connections that the gateway closed', closed],
        ['probes of the admin listener while the public one was flooded, all answered', probes],
        ['slowest return to service', `${Math.round(slowestMs)} ms`],
      ],
      faults,
    };
  },
};

/** The status of the admin listener's probe; 0 without an answer. Each has a connection of its own, as a new prober has. */
function probe({ served }: Subject): Promise<number> {
  return new Promise((resolve) => {
    const request = get(`${served.adminUrl}/healthz`, { agent: false, timeout: probeMs }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(0));
  });
}

function open({ served, key }: Subject, { listener, bytes }: Flood): Socket {
  const { hostname, port } = new URL(listener === 'public' ? served.url : served.adminUrl);
  const socket = connect({ port: Number(port), host: hostname }).on('error', () => {});
  socket.on('data', () => {});
  socket.once('connect', () => socket.write(bytes(key)));
  return socket;
}

/** The time until a client is served again, and the admin listener answers, in milliseconds. */
async function recover({ served, key }: Subject, acknowledged: Acknowledged): Promise<number> {
  const startMs = performance.now();
  while (performance.now() - startMs <= maxRecoveryMs) {
    const status = await askNumber(served.url, key, true, acknowledged).catch(() => 0);
    if (status === 200 && (await served.readiness()) === 200) break;
    await wait(50);
  }
  return performance.now() - startMs;
}
