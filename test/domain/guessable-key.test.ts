import { describe, expect, test } from 'vitest';
import { isGuessable } from '../../src/domain/keys/guessable-key.ts';
import { randomNumbers } from '../support/random-numbers.ts';

describe('a key is guessable', () => {
  test.each([
    'changeme-changeme-changeme',
    'your-api-key-goes-here-please',
    'sk-your-secret-key-here-1234',
    'my-super-secret-password-2024',
    'sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    'sk-00000000000000000000000000000000',
    'sk-tg-test-test-test-test',
    '12345678901234567890',
    'abcdefghijklmnopqrstuvwxyz',
    'ZYXWVUTSRQPONMLKJIHGFEDC',
    'qwertyuiopasdfghjklzxcvbnm',
    'deadbeefdeadbeefdeadbeefdeadbeef',
    'a1b2c3a1b2c3a1b2c3a1b2c3',
    '--------------------------------',
    '${OPENAI_API_KEY_OF_MINE}',
    'aabbaabbababbaabbaababba',
  ])('when it is a placeholder or a pattern: %s', (key) => {
    expect(isGuessable(key)).toBe(true);
  });
});

/** The words that random keys have by chance, and how many characters a key has beside its words. */
const shortWords =
  /api|demo|dev|fake|foo|bar|here|key|me|my|prod|proj|put|sk|test|tg|the|this|todo|user|with|your?/gi;
const leastBesideWords = 12;

describe('a key is not guessable', () => {
  test.each([
    ['20 characters of an older gateway', 'sk-Yq3vT9LmW0zKc7Rb1'],
    ['a UUID', '7c1f4e0a-93d2-4b58-8c6e-5fa0b1d29e34'],
    ['openssl rand -hex 16', '9f86d081884c7d659a2feaa0c55ad015'],
    ['openssl rand -base64 32', 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA='],
    ['a key with words before it', 'sk-proj-test-Zt8HqY2wLr5VxK1nPd0c'],
  ])('when it is %s', (_kind, key) => {
    expect(isGuessable(key)).toBe(false);
  });

  test.each([
    ['letters and digits', 20, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'],
    ['hexadecimal digits', 32, '0123456789abcdef'],
  ])('when it is random: %s', (_kind, length, alphabet) => {
    const { random, seed } = randomNumbers();
    const digit = (): string => alphabet.charAt(Math.floor(random() * alphabet.length));
    for (let number = 0; number < 5_000; number++) {
      const key = Array.from({ length }, digit).join('');
      // One of the shortest keys may have three words by chance, and then too little beside them.
      if (key.replaceAll(shortWords, '').length < leastBesideWords) continue;
      expect(isGuessable(key), `seed ${seed}: ${key}`).toBe(false);
    }
  });
});
