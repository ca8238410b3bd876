import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { checkConfig } from '../../src/config/load.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const text = readFileSync(join(root, 'config', 'compose', 'sidecar.yml'), 'utf8');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

interface Service {
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly restart?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

/** The services, with variables replaced as compose does: `:?` requires one, and `:-` has a default. */
function readServices(environment: Readonly<Record<string, string>>): Record<'app' | 'textgate', Service> {
  const replaced = text.replaceAll(
    /\$\{(\w+):([?-])([^}]*)\}/g,
    (_whole, name: string, operator: string, rest: string) => {
      const value = environment[name] ?? '';
      if (value === '' && operator === '?') throw new Error(`${name}: ${rest}`);
      return value === '' ? (operator === '-' ? rest : '') : value;
    },
  );
  return (parse(replaced) as { services: Record<'app' | 'textgate', Service> }).services;
}

/** The arguments of the image's command, and the variables that it sets. */
const [, written = '[]'] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? [];
const imageCommand = JSON.parse(written) as readonly string[];
const imageEnvironment = Object.fromEntries(
  [...dockerfile.matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name = '', value = '']) => [name, value]),
);

const key = randomBytes(32).toString('hex');
let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
  const say = sayTexts(['Hello from the sidecar']);
  upstream.play((response, request) =>
    request.body === '' ? void response.end('{"data":[{"id":"tiny"}]}') : say(response, request),
  );
});
afterEach(() => upstream.close());

describe('the sidecar of the compose file', () => {
  test('serves the app with the key of the environment, without a hand in between', async () => {
    const { app, textgate } = readServices({ TEXTGATE_KEY: key, TEXTGATE_UPSTREAM_URL: upstream.url });
    expect(dockerfile).toMatch(/^ENTRYPOINT \["textgate"\]$/m);
    const folder = makeTemporaryFolder();
    const server = serveHere(imageCommand, folder, {
      ...imageEnvironment,
      ...textgate.environment,
      ...freePorts,
    });
    const [, port = '', adminPort = ''] = await server.printed(
      /serves http:\/\/0\.0\.0\.0:(\d+)\/v1 \(admin: \S+:(\d+)\)/,
    );
    expect(server.output()).not.toContain('This is your first key');

    const [kind, program, ...check] = textgate.healthcheck?.test ?? [];
    expect([kind, program]).toEqual(['CMD', 'textgate']);
    const ports = { TEXTGATE_ADMIN_PORT: adminPort };
    const { code } = await runCommand(check, folder, { ...textgate.environment, ...ports });
    expect(code).toBe(0);

    // The host name and the port of the network of services are those of this machine here.
    const { server: ours } = checkConfig({ upstreams: {}, models: {} }, 'nothing');
    const environment: Record<string, string> = {
      ...app.environment,
      OPENAI_BASE_URL:
        app.environment['OPENAI_BASE_URL']?.replace(`textgate:${ours.port}`, `127.0.0.1:${port}`) ?? '',
    };
    expect(environment['OPENAI_BASE_URL']).toBe(`http://127.0.0.1:${port}/v1`);
    const client = new OpenAI({
      baseURL: environment['OPENAI_BASE_URL'] ?? '',
      apiKey: environment['OPENAI_API_KEY'] ?? '',
    });
    const answer = await client.chat.completions.create({
      model: 'tiny',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(answer.choices[0]?.message.content).toBe('Hello from the sidecar');

    const [node, ...args] = app.command ?? [];
    expect(node).toBe('node');
    const { stdout } = await run(process.execPath, args, { env: environment });
    expect(stdout).toBe('Hello from the sidecar\n');
  });

  test('does not start without a key', () => {
    expect(() => readServices({})).toThrow('TEXTGATE_KEY: set it to a random text');
  });

  test('is reached by the services of its file only, and has few rights', () => {
    const { app, textgate } = readServices({ TEXTGATE_KEY: key });
    expect([app.ports, textgate.ports]).toEqual([undefined, undefined]);
    expect(textgate).toMatchObject({ restart: 'unless-stopped', read_only: true, cap_drop: ['ALL'] });
    expect(textgate.volumes).toEqual(['textgate-data:/app/data']);
    expect(dockerfile).toMatch(/^VOLUME \/app\/data$/m);
    expect(app.depends_on).toEqual({ textgate: { condition: 'service_healthy' } });
  });
});
