import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestCertificate } from './certificate.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

/** A proxy whose config the documentation has. */
export type ProxyName = 'nginx' | 'caddy' | 'haproxy';

/** What a proxy runs with instead of the addresses and files of the documentation. */
export interface ProxyPlace {
  /** A folder for its files. */
  readonly folder: string;
  readonly certificate: TestCertificate;
  /** Ports by those of the documentation. */
  readonly ports: Readonly<Record<string, string>>;
  /** The path of the gateway's unix socket. */
  readonly socket: string;
}

/** A running proxy. */
export interface ProxyProcess {
  /** Its address for clients. */
  readonly url: string;
  close(): Promise<void>;
}

/** How a proxy is started with its config, in the foreground and without the rights of root. */
interface Start {
  readonly versionArguments: readonly string[];
  readonly args: readonly string[];
  /** The file of its config, with what it needs to run as a test. */
  readonly file: string;
  readonly wrap: (block: string, folder: string) => string;
}

const starts: Readonly<Record<ProxyName, Start>> = {
  nginx: {
    versionArguments: ['-v'],
    args: ['-p', '.', '-c', 'nginx.conf', '-e', 'stderr'],
    file: 'nginx.conf',
    wrap: (block, folder) =>
      `daemon off;\npid nginx.pid;\nerror_log stderr;\n${process.getuid?.() === 0 ? 'user root;\n' : ''}events {}\nhttp {\naccess_log off;\n` +
      ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${folder}/${name};\n`)
        .join('') +
      `${block}\n}\n`,
  },
  caddy: {
    versionArguments: ['version'],
    args: ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile'],
    file: 'Caddyfile',
    wrap: (block) => `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${block}\n`,
  },
  haproxy: {
    versionArguments: ['-v'],
    args: ['-db', '-f', 'haproxy.cfg'],
    file: 'haproxy.cfg',
    wrap: (block) => `${block}\n`,
  },
};

/** The proxies that are not installed here; their tests are skipped. */
export const missingProxies: ReadonlySet<ProxyName> = new Set(
  (Object.keys(starts) as ProxyName[]).filter(
    (name) => spawnSync(name, starts[name].versionArguments, { env: environment() }).status !== 0,
  ),
);

/** Starts a proxy with the block that the documentation has for it. */
export async function startProxy(name: ProxyName, place: ProxyPlace): Promise<ProxyProcess> {
  const { folder, certificate } = place;
  const { file, wrap, args } = starts[name];
  const port = String(await freePort());
  const block = blockOf(name);
  const replaced: readonly (readonly [string | RegExp, string])[] = [
    ['https://llm.example.com', `https://localhost:${port}`],
    [/listen 443 /, `listen 127.0.0.1:${port} `],
    ['server_name llm.example.com', 'server_name localhost'],
    ['bind :443 ', `bind 127.0.0.1:${port} `],
    ['/etc/ssl/llm.pem', join(folder, 'llm.pem')],
    ['/etc/ssl/llm.crt', certificate.paths.cert],
    ['/etc/ssl/llm.key', certificate.paths.key],
    ['/run/textgate/textgate.sock', place.socket],
    ...Object.entries(place.ports).map(([from, to]) => [`127.0.0.1:${from}`, `127.0.0.1:${to}`] as const),
  ];
  const written = replaced.reduce((text, [from, to]) => text.replace(from, to), block);
  writeFileSync(join(folder, file), wrap(written, folder));
  writeFileSync(join(folder, 'llm.pem'), certificate.pem + readFileSync(certificate.paths.key, 'utf8'));
  const child = spawn(name, args, {
    cwd: folder,
    env: environment(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const kill = (): void => void child.kill('SIGTERM');
  // An interrupted test run must not leave it running.
  process.once('exit', kill);
  const url = `https://localhost:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`);
    const statuses = await Promise.all(
      ['/llm/readyz', '/text/readyz'].map((path) =>
        fetch(url + path).then(
          ({ status }) => status,
          () => 0,
        ),
      ),
    );
    return statuses.every((status) => status === 200);
  };
  const close = async (): Promise<void> => {
    process.off('exit', kill);
    kill();
    await ended;
  };
  await eventually(`${name} is ready`, isReady).catch(async (error: unknown) => {
    await close();
    throw new Error(said, { cause: error });
  });
  return { url, close };
}

/** The first block of the documentation's page in the language of a proxy. */
function blockOf(name: ProxyName): string {
  const language = name === 'caddy' ? 'caddyfile' : name;
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'operators', 'network.md'), 'utf8');
  const [, block] = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(page) ?? [];
  if (block === undefined) throw new Error(`docs/operators/network.md has no block for ${name}`);
  return block;
}

/** Servers are in folders that are not on every user's path; caddy keeps its state at home. */
function environment(home = process.env['HOME']): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${process.env['PATH']}:/usr/sbin`,
    HOME: home,
    XDG_DATA_HOME: home,
    XDG_CONFIG_HOME: home,
  };
}
