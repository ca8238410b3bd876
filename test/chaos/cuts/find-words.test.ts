import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { filesWithWords } from './find-words.ts';

const word = 'saidqwertzuiopasd';
/** How much is read of a file at a time, in bytes. */
const chunkBytes = 65_536;

test.each<[string, Buffer]>([
  ['as it is', Buffer.from(`{"content":"part 1, ${word} é"}`)],
  ['at the edge of what is read at a time', Buffer.from(`${'x'.repeat(chunkBytes - 5)}${word}`)],
  ['in two bytes a character', Buffer.from(`x ${word}`, 'utf16le')],
  ['in hexadecimal', Buffer.from(`\\x${Buffer.from(`part ${word}`).toString('hex')}`)],
  ['in hexadecimal of capitals', Buffer.from(Buffer.from(`part ${word}`).toString('hex').toUpperCase())],
  ['in Base64', Buffer.from(Buffer.from(`par${word}`).toString('base64'))],
  ['in Base64, behind one byte', Buffer.from(Buffer.from(`x${word}, and more`).toString('base64'))],
  ['in Base64, behind two bytes', Buffer.from(Buffer.from(`xy${word}, and more`).toString('base64url'))],
])('a file that has a word %s is found, however deep it lies', async (_how, bytes) => {
  const folder = makeTemporaryFolder();
  mkdirSync(join(folder, 'gateway', 'data'), { recursive: true });
  writeFileSync(join(folder, 'gateway', 'data', 'textgate.db-wal'), bytes);
  writeFileSync(join(folder, 'gateway', 'log'), `another word, and a part of it: ${word.slice(1)}`);
  writeFileSync(join(folder, 'empty'), '');
  expect(await filesWithWords(folder, ['askedyxcvbnm', word])).toEqual(['gateway/data/textgate.db-wal']);
});

test('a file without the words is not found', async () => {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'log'), gzipSync('another word'));
  expect(await filesWithWords(folder, [word])).toEqual([]);
});
