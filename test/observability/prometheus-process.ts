import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { stringify } from 'yaml';
import { prometheusFolder, readYaml } from './monitoring-files.ts';
import { freePort } from '../support/free-port.ts';

/** The interval of scrapes and evaluations in tests. */
const interval = '500ms';

/** How long a value may take to appear in Prometheus, and the pause between two queries, in milliseconds. */
const patienceMs = 60_000;
const pauseMs = 50;

/** One series of an answer, with its current value. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A real Prometheus with the project's rules, which scrapes a gateway. */
export interface PrometheusProcess {
  query(expression: string): Promise<readonly Sample[]>;
  rules(): Promise<
    readonly { readonly name: string; readonly health: string; readonly lastError?: string }[]
  >;
  close(): Promise<void>;
}

/** Whether Prometheus and its tool are installed here. */
export const hasPrometheus = ['prometheus', 'promtool'].every(
  (binary) => spawnSync(binary, ['--version']).status === 0,
);

/** Runs promtool; returns its exit code and output. */
export function promtool(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, {
    cwd: prometheusFolder,
    input,
    encoding: 'utf8',
  });
  return { status, said: stdout + stderr };
}

/** Waits until a condition holds that other processes bring about. */
export async function eventuallySeen(what: string, condition: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedMs > patienceMs) throw new Error(`never became true: ${what}`);
    await setTimeout(pauseMs);
  }
}

export async function startPrometheus(adminUrl: string): Promise<PrometheusProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-prometheus-'));
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, stringify(testConfig(new URL(adminUrl).host)));
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const kill = (): void => void child.kill('SIGKILL');
  // An interrupted test run must not leave it running.
  process.once('exit', kill);
  const close = async (): Promise<void> => {
    process.off('exit', kill);
    kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const ask = async <T>(path: string, parameters = {}): Promise<T> => {
    const search = new URLSearchParams(parameters).toString();
    const response = await fetch(`http://${address}/api/v1/${path}?${search}`);
    const answer = (await response.json()) as { status: string; error?: string; data: T };
    if (answer.status !== 'success') throw new Error(`${answer.error} in ${JSON.stringify(parameters)}`);
    return answer.data;
  };
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`prometheus ended: ${log}`);
    return fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await eventuallySeen('a ready Prometheus', isReady).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    async query(expression) {
      const { result } = await ask<{ result: { metric: Sample['metric']; value: [number, string] }[] }>(
        'query',
        {
          query: expression,
        },
      );
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
    },
    async rules() {
      const { groups } = await ask<{ groups: { rules: Awaited<ReturnType<PrometheusProcess['rules']>> }[] }>(
        'rules',
      );
      return groups.flatMap(({ rules }) => rules);
    },
    close,
  };
}

/** The project's config, with this test's target and short intervals. */
function testConfig(target: string): object {
  const config = readYaml(join(prometheusFolder, 'prometheus.yml')) as {
    global: object;
    rule_files: string[];
    scrape_configs: [object];
  };
  const [job] = config.scrape_configs;
  return {
    ...config,
    global: {
      ...config.global,
      scrape_interval: interval,
      scrape_timeout: interval,
      evaluation_interval: interval,
    },
    rule_files: config.rule_files.map((file) => join(prometheusFolder, file)),
    scrape_configs: [{ ...job, static_configs: [{ targets: [target] }] }],
  };
}
