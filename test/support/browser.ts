import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { servicesRequired } from './services.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

const found = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((file) => file !== undefined && existsSync(file));

/** Why tests with a browser can't run here; `null` where they can, and where they must. */
export const browserAbsence =
  found === undefined && !servicesRequired ? 'needs Chromium; CHROMIUM names it' : null;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
  readonly sessionId?: string;
}

/** A page of a browser. */
export interface BrowserPage {
  open(url: string): Promise<void>;
  /** Runs an expression in the page, and awaits its value. */
  run(expression: string): Promise<unknown>;
  /** The addresses of the frames in the page, as the browser shows them: an error page where it shows none. */
  frames(): Promise<readonly string[]>;
  /** What the browser complained of in the page: errors of scripts, of the policy, and of loading. */
  readonly complaints: readonly string[];
}

/** Starts a browser of its own for the running test, which ends with it. All of its pages share its cookies. */
export async function openBrowser(): Promise<{ openPage(): Promise<BrowserPage> }> {
  const folder = makeTemporaryFolder();
  const flags = [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-dev-shm-usage',
  ];
  const browser = spawn(
    found ?? 'chromium',
    [...flags, '--remote-debugging-port=0', `--user-data-dir=${folder}`, 'about:blank'],
    { stdio: 'ignore' },
  );
  const ended = once(browser, 'exit');
  onTestFinished(async () => {
    browser.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const portFile = join(folder, 'DevToolsActivePort');
  const lines = (): readonly string[] =>
    existsSync(portFile) ? readFileSync(portFile, 'utf8').split('\n') : [];
  await eventually('the browser listens', () => lines().length > 1);
  const [port, path] = lines();
  const call = await connect(`ws://127.0.0.1:${port}${path}`);
  return { openPage: () => openPage(call) };
}

type Call = ((method: string, params?: object, sessionId?: string) => Promise<unknown>) & {
  listen(listener: (message: Message) => void): void;
};

/** Connects to the protocol for debuggers of the browser. */
async function connect(url: string): Promise<Call> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (message: Message) => void>();
  const listeners: ((message: Message) => void)[] = [];
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    if (message.id === undefined) for (const listener of listeners) listener(message);
    else waiting.get(message.id)?.(message);
  });
  await once(socket, 'open');
  onTestFinished(() => socket.close());
  let last = 0;
  const call = (method: string, params: object = {}, sessionId?: string): Promise<unknown> => {
    const id = ++last;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.set(id, ({ result, error }) => {
      waiting.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(`${method}: ${error.message}`));
    });
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return promise;
  };
  return Object.assign(call, {
    listen: (listener: (message: Message) => void) => void listeners.push(listener),
  });
}

async function openPage(call: Call): Promise<BrowserPage> {
  const { targetId } = (await call('Target.createTarget', { url: 'about:blank' })) as { targetId: string };
  const attached = (await call('Target.attachToTarget', { targetId, flatten: true })) as {
    sessionId: string;
  };
  const { sessionId } = attached;
  const complaints: string[] = [];
  let loads = 0;
  call.listen((message) => {
    if (message.sessionId !== sessionId) return;
    if (message.method === 'Page.loadEventFired') loads++;
    const { entry } = (message.params ?? {}) as { entry?: { level: string } };
    const isEntry = message.method === 'Log.entryAdded' && entry?.level !== 'verbose';
    if (isEntry || message.method === 'Runtime.exceptionThrown')
      complaints.push(JSON.stringify(message.params));
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await call(`${domain}.enable`, {}, sessionId);
  return {
    complaints,
    async frames() {
      const { frameTree } = (await call('Page.getFrameTree', {}, sessionId)) as {
        frameTree: { childFrames?: readonly { frame: { url: string } }[] };
      };
      return (frameTree.childFrames ?? []).map(({ frame }) => frame.url);
    },
    async open(url) {
      const before = loads;
      await call('Page.navigate', { url }, sessionId);
      await eventually(`${url} is loaded`, () => loads > before);
    },
    async run(expression) {
      const asked = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
      const { result, exceptionDetails } = (await call('Runtime.evaluate', asked, sessionId)) as {
        result: { value?: unknown };
        exceptionDetails?: { exception?: { description?: string } };
      };
      if (exceptionDetails !== undefined)
        throw new Error(exceptionDetails.exception?.description ?? 'it threw');
      return result.value;
    },
  };
}
