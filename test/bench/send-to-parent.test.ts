import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

/** Blocks until it can read a byte, so that it does not notice the end of its channel before it sends. */
const program = `
  import { readSync } from 'node:fs';
  import { sendToParent } from ${JSON.stringify(join(import.meta.dirname, 'send-to-parent.ts'))};
  process.once('disconnect', () => process.exit());
  process.on('message', () => {});
  sendToParent('ready');
  readSync(0, Buffer.alloc(1));
  sendToParent('a result');
`;

test('a process of the bench that sends its result after the end of the bench ends, too, and prints nothing', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['pipe', 'inherit', 'pipe', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const exited = once(child, 'exit');
  await once(child, 'message');
  const disconnected = once(child, 'disconnect');
  child.disconnect();
  await disconnected;
  child.stdin?.write('x');
  const [code] = (await exited) as [number | null];
  if (child.stderr?.readableEnded === false) await once(child.stderr, 'end');
  expect([code, printed]).toEqual([0, '']);
});
