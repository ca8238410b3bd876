import { once } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { ConnectionRefusal } from '../../src/domain/edge.ts';
import { ConnectionTable } from '../../src/http/connections/connection-table.ts';
import { connectionOf } from '../../src/http/connections/connection.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** How long a new connection is protected from eviction, and how long an address counts as a client's; in milliseconds. */
const [protectedMs, clientAddressMs] = [1_000, 600_000];

/** A table that takes two connections without a key from one address; each connection is a second older than the next. */
function openTable({ maxConnections = 100 } = {}) {
  const clock = createFakeClock();
  const refusals: ConnectionRefusal[] = [];
  const table = new ConnectionTable({
    limits: () => ({ maxConnections, maxAnonymousPerAddress: 2 }),
    deadlines: { head: 10_000, request: 60_000, unread: 30_000, idle: 65_000 },
    clock,
    onRefused: (reason) => void refusals.push(reason),
    isProxy: () => false,
  });
  const accept = (address: string, pauseMs = protectedMs): Socket => {
    const socket = new Socket();
    Object.defineProperty(socket, 'remoteAddress', { value: address });
    table.accept(socket);
    clock.advance(pauseMs);
    return socket;
  };
  const close = async (socket: Socket): Promise<void> => {
    const closed = once(socket, 'close');
    socket.destroy();
    await closed;
  };
  return { clock, refusals, accept, close };
}

describe('a table of connections', () => {
  test('counts those of an address also after one of them has closed', async () => {
    const { refusals, accept, close } = openTable();
    const [first, second] = [accept('192.0.2.1'), accept('192.0.2.1')];
    await close(first);
    const [third, fourth] = [accept('192.0.2.1'), accept('192.0.2.1')];
    expect([second, third, fourth].map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
    expect(refusals).toEqual(['evicted']);
  });

  test('has no limit for an address while one with a key is open, however long, also after another has closed', async () => {
    const { clock, refusals, accept, close } = openTable();
    const known = accept('192.0.2.1');
    connectionOf(known)?.recognize();
    await close(accept('192.0.2.1'));
    clock.advance(clientAddressMs);
    const others = Array.from({ length: 5 }, () => accept('192.0.2.1'));
    expect([known, ...others].filter(({ destroyed }) => destroyed)).toEqual([]);
    expect(refusals).toEqual([]);
  });

  test('has a limit again ten minutes after the last one with a key has closed, and not before', async () => {
    const { clock, refusals, accept, close } = openTable();
    const known = accept('192.0.2.1');
    connectionOf(known)?.recognize();
    await close(known);
    clock.advance(clientAddressMs - 4 * protectedMs);
    const others = Array.from({ length: 4 }, () => accept('192.0.2.1'));
    expect([others.filter(({ destroyed }) => destroyed), refusals]).toEqual([[], []]);
    accept('192.0.2.1');
    expect(others.map(({ destroyed }) => destroyed)).toEqual([true, false, false, false]);
    expect(refusals).toEqual(['evicted']);
  });

  test('that is full evicts those with a key after a second of idleness, the longest idle first, for half of its places', () => {
    const { clock, refusals, accept } = openTable({ maxConnections: 4 });
    const known = Array.from({ length: 4 }, (_, index) => accept(`192.0.2.${index}`, 0));
    for (const socket of known) connectionOf(socket)?.recognize();
    const late = (index: number): boolean => accept(`198.51.100.${index}`, 0).destroyed;
    clock.advance(protectedMs - 1);
    expect(late(0)).toBe(true);
    clock.advance(1);
    expect([late(1), late(2), late(3)]).toEqual([false, false, true]);
    expect(known.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false]);
    expect(refusals).toEqual(['listener_full', 'evicted', 'evicted', 'listener_full']);
  });

  test('that is full protects a new connection for a second, and evicts the longest idle one without a key then', () => {
    const { clock, refusals, accept } = openTable({ maxConnections: 2 });
    const open = [accept('192.0.2.1', 0), accept('192.0.2.2', 0)];
    clock.advance(protectedMs - 1);
    expect(accept('192.0.2.3', 0).destroyed).toBe(true);
    clock.advance(1);
    expect(accept('192.0.2.3', 0).destroyed).toBe(false);
    expect(open.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    expect(refusals).toEqual(['listener_full', 'evicted']);
  });
});
