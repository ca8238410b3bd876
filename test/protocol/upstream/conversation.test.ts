import { expect, test } from 'vitest';
import type { TextTurn } from '../../../src/protocol/text.ts';
import { splitConversation } from '../../../src/protocol/upstream/conversation.ts';

const system = (text: string): TextTurn => ({ role: 'system', text });
const user = (text: string): TextTurn => ({ role: 'user', text });
const assistant = (text: string): TextTurn => ({ role: 'assistant', text });

test.each<[string, TextTurn[], string, TextTurn[]]>([
  [
    'what the system says anywhere is joined and kept apart',
    [system('a'), user('u'), system('b'), assistant('v'), user('w')],
    'a\n\nb',
    [user('u'), assistant('v'), user('w')],
  ],
  [
    'turns of one role in a row become one',
    [user('a'), user('b'), assistant('c'), assistant('d'), assistant('e'), user('f')],
    '',
    [user('a\n\nb'), assistant('c\n\nd\n\ne'), user('f')],
  ],
  [
    'turns that only the system parts are in a row as well',
    [user('a'), system('s'), user('b')],
    's',
    [user('a\n\nb')],
  ],
  [
    'blank turns are left out, and so are what they parted',
    [system(' '), user('a'), assistant(''), user(' b\n')],
    '',
    [user('a\n\n b\n')],
  ],
  [
    'an assistant may come first and last',
    [assistant('a'), user('u'), assistant('b')],
    '',
    [assistant('a'), user('u'), assistant('b')],
  ],
  [
    'a system that speaks alone is heard as the user',
    [system('a'), system('b'), user('')],
    '',
    [user('a\n\nb')],
  ],
  ['where nobody says anything nothing is made up', [user(''), system('')], '', []],
])('%s', (_name, history, said, turns) => {
  expect(splitConversation(history)).toEqual({ system: said, turns });
});
