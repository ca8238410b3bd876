import { writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { readTarget } from '../../src/storage/postgres/connection/connection-target.ts';
import { eventually } from '../support/eventually.ts';
import { keep, stubEnvironment } from '../support/postgres-connection.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

describe('the URL of a PostgreSQL database', () => {
  test.each([
    [
      'postgres://me:pass@db.example:6432/gate',
      { host: 'db.example', port: 6432, user: 'me', database: 'gate', ssl: false },
      'postgres://me@db.example:6432/gate',
    ],
    [
      'postgresql://m%40e:p%2Fa%3Fs%23s@[::1]/g%20ate',
      { host: '::1', port: 5432, user: 'm@e', database: 'g ate' },
      'postgres://m%40e@[::1]/g%20ate',
    ],
    [
      'postgres://me@%2Frun%2Fpostgresql/gate',
      { host: '/run/postgresql', port: 5432 },
      'postgres://me@%2Frun%2Fpostgresql/gate',
    ],
    [
      'postgres://me@db/gate?sslmode=require',
      { ssl: { rejectUnauthorized: false } },
      'postgres://me@db/gate',
    ],
    [
      'postgres://me@db/gate?sslmode=verify-full',
      { ssl: { rejectUnauthorized: true } },
      'postgres://me@db/gate',
    ],
    ['postgres://me:an@sign@db/gate', { host: 'db', user: 'me', database: 'gate' }, 'postgres://me@db/gate'],
  ])('is read from %s', (text, config, name) => {
    const target = readTarget(text);
    expect(target.config).toMatchObject(config);
    expect(target.name).toBe(name);
  });

  test('gives the password to pg only', async () => {
    const { config, name } = readTarget('postgres://me:p%2Fa%3Fs@db/gate');
    expect(typeof config.password === 'function' && (await config.password())).toBe('p/a?s');
    expect(name + JSON.stringify(config)).not.toMatch(/p(%2F|\/)a/);
  });

  test.each([
    ['mysql://me:S3CRET@db/gate', 'is no URL'],
    ['S3CRET', 'is no URL'],
    ...[
      'S3/CRET',
      'S3#CRET',
      'S3?CRET',
      '12/S3CRET',
      '12#S3CRET',
      '12?S3CRET',
      '12@S3/CRET',
      '12@S3#CRET',
    ].flatMap((password) => [
      [`postgres://me:${password}@db/gate`, 'write %2F, %3F, %23 and %40'],
      [`postgres://me:${password}@db`, 'write %2F, %3F, %23 and %40'],
      [`postgres://me:${password}@db/gate?sslmode=require`, 'write %2F, %3F, %23 and %40'],
    ]),
    ['postgres://me#S3CRET:1@db/gate', 'not encoded'],
    ['postgres://me:S3CRET@db/gate?sslmode=prefer&sslrootcert=/a@b/c', 'none of disable'],
    ['postgres://me:S3CRET%@db/gate', 'write %25'],
    ['postgres://db/gate', 'has no user'],
    ['postgres://me:S3CRET@db', 'has no database'],
    ['postgres://me:S3CRET@db/gate?sslmode=prefer', 'none of disable'],
    ['postgres://me:S3CRET@db/gate?options=-csearch_path%3Dx', 'the parameters sslmode'],
    ['postgres://me:S3CRET@db/gate?sslrootcert=/nowhere', 'sslrootcert'],
  ])('is refused for %s, without its password', (text, reason) => {
    const refused = (): unknown => readTarget(text);
    expect(refused).toThrow(StorageError);
    expect(refused).toThrow(reason);
    expect(refused).not.toThrow(/S3|CRET/);
  });
});

describe('the environment and ~/.pgpass', () => {
  test('do not give a password to a URL without one', async () => {
    stubEnvironment();
    const sent: string[] = [];
    // AuthenticationCleartextPassword for the startup message; what follows is the password.
    const server = createServer((socket) => {
      socket.once('data', () => {
        socket.on('data', (bytes: Buffer) => void sent.push(bytes.subarray(5, -1).toString()));
        socket.write(Buffer.from('R\0\0\0\x08\0\0\0\x03'));
      });
      socket.on('error', () => {});
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const file = join(makeTemporaryFolder(), 'pgpass');
    writeFileSync(file, `127.0.0.1:${port}:*:*:of the file\n`, { mode: 0o600 });
    vi.stubEnv('PGPASSFILE', file);
    keep(`postgres://me@127.0.0.1:${port}/gate`);
    await eventually('a password is sent', () => sent.length > 0);
    expect(sent).toEqual(['']);
  });
});
