import { expect, test } from 'vitest';
import type { TextTurn } from '../../../src/protocol/text.ts';
import { splitConversation } from '../../../src/protocol/upstream/conversation.ts';

const system = (text: string): TextTurn => ({ role: 'system', text });
const user = (text: string): TextTurn => ({ role: 'user', text });
const assistant = (text: string): TextTurn => ({ role: 'assistant', text });

test.each<[string, TextTurn[], string, TextTurn[]]>([
  [
    'system messages anywhere are joined into a separate prompt',
    [system('a'), user('u'), system('b'), assistant('v'), user('w')],
    'a\n\nb',
    [user('u'), assistant('v'), user('w')],
  ],
  [
    'consecutive turns of one role become one',
    [user('a'), user('b'), assistant('c'), assistant('d'), assistant('e'), user('f')],
    '',
    [user('a\n\nb'), assistant('c\n\nd\n\ne'), user('f')],
  ],
  [
    'turns separated only by a system message become one',
    [user('a'), system('s'), user('b')],
    's',
    [user('a\n\nb')],
  ],
  [
    'blank turns are left out, and the turns around them are joined',
    [system(' '), user('a'), assistant(''), user(' b\n')],
    '',
    [user('a\n\n b\n')],
  ],
  [
    'an assistant turn may be first and last',
    [assistant('a'), user('u'), assistant('b')],
    '',
    [assistant('a'), user('u'), assistant('b')],
  ],
  [
    'a system prompt without other turns becomes a user turn',
    [system('a'), system('b'), user('')],
    '',
    [user('a\n\nb')],
  ],
  ['a conversation without text stays empty', [user(''), system('')], '', []],
])('%s', (_name, history, said, turns) => {
  expect(splitConversation(history)).toEqual({ system: said, turns });
});
