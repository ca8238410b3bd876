import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { passedOn, startNotingUpstream } from '../raw/noting-upstream.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

/** How many clients of each kind there are at scale 1. */
const clients = 200;
/** How often a slow client sends a byte, in milliseconds, and after how long it counts as not cut. */
const dripMs = 500;
const patienceMs = 60_000;
/**
 * The deadlines of the gateway, in milliseconds, and how much later a connection may be closed: Node checks once a second, a
 * refused connection lingers for another one, and a busy machine accepts 600 connections late.
 */
const headMs = 10_000;
const requestMs = 30_000;
const graceMs = 5_000;
/** How long an answer to another client may take, in milliseconds. */
const probeMs = 2_000;

/** A way to be slow: what is sent at once, then byte by byte, and the deadline that ends it. */
interface Slowness {
  readonly name: string;
  readonly begin: string;
  readonly drip: string;
  readonly deadlineMs: number;
}

const request = 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

export const section: Section = {
  name: 'slow',
  title: 'Slow clients',
  about:
    'Connections that send a head byte by byte, a body byte by byte, or nothing at all. All must be cut in time, while other ' +
    'clients are answered.',
  async run({ scale, log }) {
    const upstream = await startNotingUpstream();
    const subject = await startSubject({
      name: 'slow',
      upstreamUrl: upstream.url,
      server: { maxConnections: 2_000, maxAnonymousPerAddress: 1_000 },
      more: passedOn,
      isQuiet: true,
    });
    const { served, key } = subject;
    const authorized = `${request}Authorization: Bearer ${key}\r\n`;
    const ways: readonly Slowness[] = [
      { name: 'slow heads', begin: `${request}X: `, drip: 'y', deadlineMs: headMs },
      {
        name: 'slow bodies',
        begin: `${authorized}Content-Length: 9999\r\n\r\n{`,
        drip: ' ',
        deadlineMs: requestMs,
      },
      { name: 'silent', begin: '', drip: '', deadlineMs: headMs },
    ];
    const faults: string[] = [];
    const over = new AbortController();
    const probes: number[] = [];
    const probing = (async () => {
      while (!over.signal.aborted) {
        const startMs = performance.now();
        const status = await fetch(`${served.url}/v1/models`, {
          headers: { authorization: `Bearer ${key}` },
        }).then((response) => response.status, String);
        probes.push(performance.now() - startMs);
        if (status !== 200) faults.push(`a probe got ${status}`);
        await wait(100);
      }
    })();
    const count = Math.ceil(clients * scale);
    const cut = await Promise.all(
      ways.map(async (way) => {
        const times = await Promise.all(Array.from({ length: count }, () => cutAfter(served.url, way)));
        const late = times.filter((ms) => ms > way.deadlineMs + graceMs);
        const early = times.filter((ms) => ms < way.deadlineMs - graceMs);
        for (const ms of [...late, ...early])
          faults.push(`${way.name}: open for ${(ms / 1_000).toFixed(1)} s`);
        const shown = `${(Math.min(...times) / 1_000).toFixed(1)} to ${(Math.max(...times) / 1_000).toFixed(1)} s`;
        log(`${way.name}: cut after ${shown}`);
        return [way.name, `${count - late.length - early.length} of ${count} cut after ${shown}`] as const;
      }),
    );
    over.abort();
    await probing;
    probes.sort((a, b) => a - b);
    const p99 = probes[Math.floor(0.99 * (probes.length - 1))] ?? Infinity;
    if (p99 > probeMs) faults.push(`another client's p99 was ${p99.toFixed(0)} ms`);
    faults.push(...(await subject.finish()));
    upstream.close();
    return {
      cases: count * ways.length,
      facts: [
        ...cut,
        ['answers to another client meanwhile', probes.length],
        ['their p99', `${p99.toFixed(0)} ms`],
      ],
      faults,
    };
  },
};

/** Opens a slow connection; resolves with how long it stayed open, in milliseconds. */
function cutAfter(url: string, { begin, drip }: Slowness): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname });
    let startMs = performance.now();
    socket.on('error', () => {});
    socket.resume();
    socket.once('connect', () => {
      startMs = performance.now();
      if (begin !== '') socket.write(begin);
      const dripping = setInterval(() => void (drip !== '' && socket.writable && socket.write(drip)), dripMs);
      const patience = setTimeout(() => socket.destroy(), patienceMs);
      socket.once('close', () => {
        clearInterval(dripping);
        clearTimeout(patience);
      });
    });
    socket.once('close', () => resolve(performance.now() - startMs));
  });
}
