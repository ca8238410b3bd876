import type { AddressInfo } from 'node:net';
import express from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { startGateway } from '../support/test-gateway.ts';

test('an unknown path of a mounted router gets the path that was meant, below the mount', async () => {
  const gateway = await startGateway();
  const server = express().use('/llm', gateway.gateway.router).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const messageAt = async (path: string): Promise<string> => {
    const { error } = (await (await fetch(url + path)).json()) as { error: { message: string } };
    return error.message;
  };
  expect(await messageAt('/llm/v1/v1/models')).toContain(
    'GET /llm/v1/v1/models. Did you mean /llm/v1/models?',
  );
  expect(await messageAt('/llm/v1/chat/completion')).toContain('Did you mean /llm/v1/chat/completions?');
  expect(await messageAt('/llm/v1/embeddings')).toContain('offers text only: POST /v1/chat/completions');
  await new Promise((resolve) => server.close(resolve));
  await gateway.close();
});

test.each(['Authorization', 'Content-Type', 'Idempotency-Key'])(
  'a mounted router refuses two headers %s, of which Node hides one or joins both',
  async (name) => {
    const gateway = await startGateway();
    const server = express().use(gateway.gateway.router).listen(0, '127.0.0.1');
    onTestFinished(async () => {
      server.closeAllConnections();
      server.close();
      await gateway.close();
    });
    await new Promise((resolve) => server.once('listening', resolve));
    const client = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    client.socket.write(
      `GET /v1/models HTTP/1.1\r\nHost: x\r\n${name}: a\r\n${name.toLowerCase()}: b\r\n\r\n`,
    );
    await eventually('it is refused', () => client.text().includes('"code":"duplicate_header"'));
    expect(client.text()).toContain(`The header '${name.toLowerCase()}' was sent 2 times.`);
  },
);
