import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { settledCertificates, settledReads } from '../../src/composition/settled-reads.ts';
import { readTlsFiles } from '../../src/config/tls-files.ts';
import { makeCertificate } from '../support/certificate.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

test('a value counts once two reads in a row have found it, and is the same object while it is equal', async () => {
  const found = [
    ['a'],
    ['a', 'b'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['d'],
    ['a', 'b', 'c'],
  ];
  const first = ['a'];
  const read = settledReads(first, async () => found.shift() ?? []);
  const taken: (readonly string[])[] = [];
  for (let times = 0; times < 7; times++) taken.push(await read());
  expect(taken.map((value) => value.join(''))).toEqual(['a', 'a', 'a', 'abc', 'abc', 'abc', 'abc']);
  expect(taken.slice(0, 3).every((value) => value === first)).toBe(true);
  expect(new Set(taken.slice(3)).size).toBe(1);
});

test('a read that fails is a failure at once, and what was found before it still counts', async () => {
  const found: (string | Error)[] = ['b', new Error('gone'), 'b'];
  const read = settledReads('a', async () => {
    const next = found.shift();
    if (next instanceof Error) throw next;
    return next ?? '';
  });
  expect(await read()).toBe('a');
  await expect(read()).rejects.toThrow('gone');
  expect(await read()).toBe('b');
});

test('certificates that are half replaced are neither used nor a fault before the next look', async () => {
  const { paths } = makeCertificate(makeTemporaryFolder());
  const [before, next] = [makeTemporaryFolder(), makeTemporaryFolder()].map((folder) =>
    makeCertificate(folder),
  );
  if (before === undefined || next === undefined) throw new Error('no certificates');
  const put = (from: typeof before, ...names: readonly ('cert' | 'key')[]): void => {
    for (const name of names) copyFileSync(from.paths[name], paths[name]);
  };
  put(before, 'cert', 'key');
  const first = readTlsFiles(paths);
  const read = settledCertificates(first, paths, ['upstreams', 'local', 'tls']);
  put(next, 'cert');
  expect(await read()).toBe(first);
  // It is at fault while it stays so.
  const fault = 'upstreams.local.tls.key: this key does not belong to the certificate of cert';
  await expect(read()).rejects.toThrow(fault);
  await expect(read()).rejects.toThrow(fault);
  // As they were before, they are the same ones.
  put(before, 'cert');
  await expect(read()).rejects.toThrow(fault);
  expect(await read()).toBe(first);
  put(next, 'cert', 'key');
  expect(await read()).toBe(first);
  const found = await read();
  expect(found).toEqual(readTlsFiles(next.paths));
  expect(await read()).toBe(found);
});
