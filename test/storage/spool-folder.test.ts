import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { SettlementSpool } from '../../src/domain/ports/records.ts';
import { createSpoolInFolder } from '../../src/storage/spool/spool-folder.ts';
import { checksumOf } from '../../src/shared/checksum.ts';
import { requestIdFor, requestName } from '../support/request-ids.ts';
import { settledRecord } from '../support/settled-record.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

let folder: string;
beforeEach(() => {
  folder = join(makeTemporaryFolder(), 'spools');
});

/** Opens a spool as a new process would; `left` are the names of the requests that it found. */
async function open(
  faults: string[] = [],
  database = 'ours',
): Promise<{ spool: SettlementSpool; left: readonly string[] }> {
  const spool = createSpoolInFolder({
    folder,
    databaseId: async () => database,
    onFault: (message) => void faults.push(message),
  });
  onTestFinished(() => spool.close());
  const { records } = await spool.open();
  return { spool, left: records.map((record) => requestName(record.requestId)) };
}

const spools = (): readonly string[] => readdirSync(folder).filter((name) => name.endsWith('.spool'));

describe('the spools in a folder', () => {
  test('are one for each process, and a process takes the first one that no other has', async () => {
    const [first, second] = [await open(), await open()];
    await first.spool.append(settledRecord('a'));
    await second.spool.append(settledRecord('b'));
    expect(spools().toSorted()).toEqual(['textgate-ours-0.spool', 'textgate-ours-1.spool']);
    await first.spool.close();
    expect((await open()).left).toEqual(['a']);
  });

  test('of another database are left to its processes', async () => {
    const ours = await open();
    await ours.spool.append(settledRecord('a'));
    await ours.spool.close();
    const theirs = await open([], 'theirs');
    expect(theirs.left).toEqual([]);
    await theirs.spool.close();
    expect((await open()).left).toEqual(['a']);
  });

  test('of dead processes are taken over whole, while those of others stay theirs', async () => {
    const [first, second, third] = [await open(), await open(), await open()];
    for (const [index, { spool }] of [first, second, third].entries())
      await spool.append(settledRecord(String(index)));
    await first.spool.close();
    await third.spool.close();
    const next = await open();
    expect(next.left).toEqual(['0', '2']);
    expect(spools().toSorted()).toEqual(['textgate-ours-0.spool', 'textgate-ours-1.spool']);
    expect(readFileSync(join(folder, 'textgate-ours-0.spool'), 'utf8')).toContain(requestIdFor('2'));
    // What was taken over is removed with the rest of the own spool, and only then is it gone.
    await next.spool.close();
    const last = await open();
    expect(last.left).toEqual(['0', '2']);
    await last.spool.clear();
    await last.spool.close();
    expect((await open()).left).toEqual([]);
    await second.spool.close();
    expect((await open()).left).toEqual(['1']);
  });

  test('of another version stay whole, whose settlements would be lost with what they meant', async () => {
    const json = JSON.stringify([0, settledRecord('x')]);
    const line = `${checksumOf(json)} ${json}\n`;
    const [first, second] = [await open(), await open()];
    await first.spool.close();
    await second.spool.close();
    const paths = spools().map((name) => join(folder, name));
    for (const path of paths) writeFileSync(path, line);
    const [own = '', other = ''] = paths.toSorted();
    // Not with the advice to choose another folder, which would leave them behind.
    await expect(open()).rejects.toThrow(
      /^the spool of settlements \S+-0\.spool has one that .*: start the version that wrote it once, which settles it$/,
    );
    writeFileSync(own, '');
    const faults: string[] = [];
    expect((await open(faults)).left).toEqual([]);
    expect(faults).toEqual(['a spool of settlements that another process left could not be taken over']);
    expect(readFileSync(other, 'utf8').startsWith(line)).toBe(true);
  });

  test('are no more than a bound', async () => {
    await Promise.all(Array.from({ length: 64 }, () => open()));
    await expect(open()).rejects.toThrow('all of its 64 spools are in use by other processes');
  });

  test('fail at the start where the folder can not be made, and say how to do without', async () => {
    writeFileSync(folder, 'a file');
    await expect(open()).rejects.toThrow(
      /the spool of settlements in \S+ can't be used: .* or to none: then/,
    );
  });

  test.skipIf(process.getuid?.() === 0)('fail at the start in a folder that is not writable', async () => {
    mkdirSync(folder, { mode: 0o500 });
    onTestFinished(() => chmodSync(folder, 0o700));
    await expect(open()).rejects.toThrow(/can't be used/);
  });

  test('leave a spool that can not be read where it is, with a report', async () => {
    mkdirSync(join(folder, 'textgate-ours-3.spool'), { recursive: true });
    const faults: string[] = [];
    expect((await open(faults)).left).toEqual([]);
    expect(faults).toEqual(['a spool of settlements that another process left could not be taken over']);
    expect(spools()).toContain('textgate-ours-3.spool');
  });
});
