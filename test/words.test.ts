import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Words that hide what is meant: they make persons of programs, or leave a clause without its noun. An operator who
 * greps the log, and a reader whose first language is another one, find the field's own word instead.
 */
const riddles = [
  'nobody',
  'somebody',
  'anybody',
  'whoever',
  'whomever',
  'hears',
  'heard of',
  'is told of',
  'are told of',
  'left alone',
  'looked over',
  'lets go of',
  'one that is one',
  'so many of them',
  'for ever after',
] as const;

const root = join(import.meta.dirname, '..');
const texts = [
  ...globSync(['src/**/*.{ts,md}', 'test/**/*.ts', 'config/**/*.{json,yml,yaml}', 'docs/**/*.md', '*.md'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  }),
].filter((path) => path !== 'test/words.test.ts');

test('no source, test or page uses a word that hides what is meant', () => {
  expect(texts.length).toBeGreaterThan(300);
  const banned = new RegExp(`\\b(${riddles.join('|').replaceAll(' ', '\\s+')})\\b`, 'i');
  const found = texts.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => (banned.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});

/**
 * Words that the project made up where the field has one, each with the field's own and a text that must not come back.
 * A reader who knows limiters and permits would have to learn the others, and search for both. "Room", "place", "share" and
 * "line" in their usual senses stay.
 */
const inventions: readonly { readonly old: RegExp; readonly word: string; readonly example: string }[] = [
  { old: /\bRoom(?:s\b|[A-Z])/, word: 'UpstreamLimiter', example: 'new RoomLimits(settings)' },
  {
    old: /\b(?:Memory|Timed|Asked|Shared|Watched|Configurable|open|openWith|join|view|present|show)Rooms?\b/,
    word: 'limiter',
    example: 'const { come } = openRooms(settings);',
  },
  {
    old: /\brooms?[-_]?(?:shares?|stor|settings|refus|visit|wait|limit|of(?:next|config)|schema|instrument)/i,
    word: 'limiter, or quota',
    example: 'INSERT INTO room_shares',
  },
  {
    old: /\brooms? (?:of|before) (?:\w+ ){0,2}upstreams?\b/i,
    word: 'limiter',
    example: 'the rooms of its upstreams',
  },
  {
    old: /\b(?:Held|Given|No|take)Places?\b|\bplaceWithoutRoom\b/,
    word: 'permit',
    example: 'class HeldPlace {',
  },
  {
    old: /\bplaces? at (?:\w+ ){0,2}(?:upstream|provider)s?\b/i,
    word: 'permit',
    example: 'a place at an upstream',
  },
  {
    old: /\b(?:takes?|took|got|gets?) (?:a|no) (?:free )?place\b(?! (?:in|of|among)\b)/i,
    word: 'acquire a permit',
    example: 'It takes a place.',
  },
  {
    old: /\bfree place\b/i,
    word: 'free permit',
    example: 'without a free place',
  },
  {
    old: /\b(?:Limited|Room)Stays?\b|\bstay\.(?:place|planned|seq)\b/,
    word: 'call in flight',
    example: 'interface LimitedStay',
  },
  {
    old: /\bVisitTerms\b|\bopenVisit\b|\bvisits? to (?:the )?rooms?\b/,
    word: 'permits of a request',
    example: 'openVisit(ways)',
  },
  {
    old: /\b(?:Share(?:Claim|Demand|Of|Store)|GrantedShare|settleShares|settle_shares|own_share)\b/,
    word: 'quota',
    example: 'class ShareClaim {',
  },
  {
    old: /\bshares? (?:of|in) (?:\w+ ){0,2}limits? of (?:\w+ )?upstreams?\b|\bshares are settled\b/i,
    word: 'quota',
    example: 'shares of the limits of upstreams',
  },
  {
    old: /\b(?:lines? (?:before|in front of) (?:\w+ )?(?:upstream|provider)s?|(?:wait(?:s|ed|ing)?|place) in (?:a |the )?line)\b/i,
    word: 'queue',
    example: 'its place in line',
  },
  {
    old: /(?:serve|leave|Delivery)_?Line\b|\b(?:isLineFull|waitInLine|left_line|had_line)\b/i,
    word: 'queue, or deliveries',
    example: 'key := serve_line(key);',
  },
  {
    old: /\b(?:LeftSlots|left-slots)\b|\bslots that (?:were|are) left\b/i,
    word: 'orphaned slot',
    example: 'new LeftSlots(store)',
  },
  { old: /\bLimitLooks\b/, word: 'refresh', example: 'new LimitLooks(look)' },
  {
    old: /\b(?:enterAtOnce|KeyAsks|QueuedAsk)\b/,
    word: 'tryAcquire, or a call',
    example: 'rooms.enterAtOnce(request)',
  },
  { old: /(?:\b|_)(?:fast|complete)[- _]?roads?\b/i, word: 'fast path', example: 'TEXTGATE_FAST_ROAD=off' },
];

test.each(inventions)(
  'no source, test or page has a made-up word for $word, as in “$example”',
  ({ old, example }) => {
    expect(example).toMatch(old);
    const found = texts.flatMap((path) => {
      // A sentence of a comment goes on behind the mark of the next line.
      const text = readFileSync(join(root, path), 'utf8').replaceAll(/\n\s*(?:\*|\/\/)?\s*/g, ' ');
      const { 0: word, index = 0 } = old.exec(text) ?? {};
      return word === undefined ? [] : [`${path}: …${text.slice(Math.max(0, index - 40), index + 60)}…`];
    });
    expect(found).toEqual([]);
  },
);

test.each([
  'there is no room on the disk, and none in the line for another word',
  'a file that took the place of another one, which is in the same place',
  'each worker takes a place in the list, or takes its place of before',
  'processes that share a database, and a share of 5% of the requests',
  'the keys stay as they are, and the last certificates stay in use',
  'a line of the log for each upstream, and the command line',
  'what is left of a slot, and what was left open',
])('plain English is no made-up word: %s', (sentence) => {
  expect(inventions.filter(({ old }) => old.test(sentence)).map(({ word }) => word)).toEqual([]);
});
