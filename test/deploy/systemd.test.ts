import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { configFolder } from '../observability/monitoring-files.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const unit = readFileSync(join(configFolder, 'systemd', 'textgate.service'), 'utf8');
const dockerfile = readFileSync(join(configFolder, '..', 'Dockerfile'), 'utf8');

/** The values of a setting, which may be given several times. */
const valuesOf = (name: string): readonly string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

/** The version that looks at a file without a running systemd. */
const minVersion = 250;

/** The exposure that systemd computes at most: 0 is a service without any rights, 10 one with all. */
const maxExposure = 1.2;

/** How long the last settlements may take at a shutdown, in seconds. */
const settlementsS = 20;

function versionHere(): number {
  const { status, stdout } = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' });
  return status === 0 ? Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? 0) : 0;
}

/** Runs systemd-analyze on the unit, whose program is one that exists here. */
function analyze(...args: readonly string[]) {
  const file = join(makeTemporaryFolder(), 'textgate.service');
  writeFileSync(file, unit.replace('/usr/local/bin/textgate', process.execPath));
  return spawnSync('systemd-analyze', [...args, file], { encoding: 'utf8' });
}

describe('the unit for systemd', () => {
  test('leaves the process time for its drain and its last settlements', () => {
    const { drain, shutdownDelay } = checkConfig({ upstreams: {}, models: {} }, 'nothing').server;
    const neededS = (drain + shutdownDelay) / 1_000 + settlementsS;
    expect(Number(valuesOf('TimeoutStopSec')[0])).toBeGreaterThan(neededS);
    expect([valuesOf('KillMode'), valuesOf('ExecReload')]).toEqual([['mixed'], ['/bin/kill -HUP $MAINPID']]);
  });

  test('starts the command that the package installs, with the heap settings of the image', () => {
    expect(valuesOf('ExecStart')).toEqual(['/usr/local/bin/textgate serve']);
    const [, options = 'none'] = /^ENV NODE_OPTIONS=(.*)$/m.exec(dockerfile) ?? [];
    expect(valuesOf('Environment').join(' ')).toContain(`NODE_OPTIONS=${options}`);
  });

  test('keeps the data in the folder of its state, and forbids no memory that V8 needs', () => {
    expect([valuesOf('StateDirectory'), valuesOf('WorkingDirectory')]).toEqual([
      ['textgate'],
      ['%S/textgate'],
    ]);
    expect(valuesOf('MemoryDenyWriteExecute')).toEqual([]);
  });

  describe.skipIf(versionHere() < minVersion)(`by systemd-analyze (needs systemd ${minVersion})`, () => {
    test('has no faults', () => {
      const { status, stdout, stderr } = analyze('verify', '--man=no');
      expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
    });

    test('has few rights', () => {
      const { stdout } = analyze('security', '--offline=true', '--no-pager');
      const [, exposure = '10'] = /exposure level for \S+: ([\d.]+)/.exec(stdout) ?? [];
      expect(Number(exposure)).toBeLessThanOrEqual(maxExposure);
    });
  });
});
