import fc from 'fast-check';
import { Pool } from 'undici';
import { afterAll, describe, expect, test } from 'vitest';
import { openStage } from '../../support/stage.ts';
import { registry } from '../../../src/protocol/contract/registry.ts';
import { propertyRun } from '../../support/property-run.ts';
import { sayTexts } from '../../support/scripted-upstream.ts';

/** How many bodies are sent at a time, and in all. */
const atATime = 16;
const run = propertyRun(60);
const bodyCount = run.numRuns * atATime;

/** The time limit for all of them, in milliseconds. */
const timeoutMs = 240_000;

const { upstream, gateway } = await openStage({ limits: { concurrency: 2 * atATime } });
upstream.play(sayTexts(['x']));
const pool = new Pool(gateway.url, { connections: atATime });
afterAll(() => pool.close());

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'hi', '\u0000', '\uD800', '𝒳', '__proto__'),
);
const junk = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text, fc.double(), fc.maxSafeInteger());
const role = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('system', 'developer', 'user', 'assistant') },
  junk,
);
const part = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'input_text', 'output_text'), text }),
  fc.record({ type: fc.constantFrom('image_url', 'refusal', 'thinking', 'constructor'), refusal: text }),
  junk,
);
const content = fc.oneof(
  { weight: 20, arbitrary: text },
  { weight: 4, arbitrary: fc.array(part, { maxLength: 4 }) },
  junk,
);
const message = fc.oneof({ weight: 30, arbitrary: fc.record({ role, content }) }, junk);
const fieldName = fc.oneof(
  fc.constantFrom(...registry.chat.rules, ...registry.responses.rules).map(({ name }) => name),
  text,
);

/** A valid body, with some of its fields replaced by others. */
const body = fc
  .tuple(
    fc.record({
      model: fc.oneof({ weight: 30, arbitrary: fc.constant('small') }, junk),
      messages: fc.oneof({ weight: 30, arbitrary: fc.array(message, { maxLength: 4 }) }, junk),
    }),
    fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, fc.dictionary(fieldName, junk, { maxKeys: 3 })),
    fc.boolean(),
  )
  .map(([base, extra, asInput]) => {
    const { messages, ...rest } = base;
    return JSON.stringify({ ...(asInput ? { ...rest, input: messages } : base), ...extra });
  });

/** Such a body with damaged bytes: cut off, doubled, mixed with bytes that are not UTF-8, or nested too deeply. */
const hurt = fc
  .tuple(body, fc.nat(), fc.constantFrom('whole', 'whole', 'whole', 'cut', 'twice', 'bytes', 'deep', 'keys'))
  .map(([json, at, how]) => {
    const bytes = Buffer.from(json);
    const place = at % (bytes.length + 1);
    switch (how) {
      case 'cut':
        return bytes.subarray(0, place);
      case 'twice':
        return Buffer.concat([bytes, bytes]);
      case 'bytes':
        return Buffer.concat([
          bytes.subarray(0, place),
          Buffer.from([0xc3, 0x28, 0xff]),
          bytes.subarray(place),
        ]);
      case 'deep':
        return Buffer.from(`${'['.repeat((at % 5_000) + 1)}${json}`);
      case 'keys':
        return Buffer.from(json.replace('{', '{"model":"other","__proto__":{"x":1},'));
      case 'whole':
        return bytes;
    }
  });

describe('generated bodies', () => {
  test(
    'cause no crash, and every refusal has its code and its path',
    async () => {
      let counted = { accepted: 0, refused: 0 };
      const send = async (bytes: Buffer): Promise<void> => {
        const path = bytes.includes('"input"') ? '/v1/responses' : '/v1/chat/completions';
        const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
        const response = await pool.request({ method: 'POST', path, headers, body: bytes });
        const answer = await response.body.text();
        if (response.statusCode === 200) {
          counted = { ...counted, accepted: counted.accepted + 1 };
          return;
        }
        counted = { ...counted, refused: counted.refused + 1 };
        const { error } = JSON.parse(answer) as {
          error: { code: string; param: string | null; message: string };
        };
        const isPlaced =
          typeof error.param === 'string' || ['invalid_json', 'invalid_type'].includes(error.code);
        const seen = { status: response.statusCode, isPlaced, hasMessage: error.message !== '' };
        expect({ ...seen, body: bytes.toString('latin1') }).toEqual({
          status: error.code === 'model_not_found' ? 404 : 400,
          isPlaced: true,
          hasMessage: true,
          body: bytes.toString('latin1'),
        });
      };
      await fc.assert(
        fc.asyncProperty(fc.array(hurt, { minLength: atATime, maxLength: atATime }), async (batch) => {
          await Promise.all(batch.map(send));
        }),
        { ...run, endOnFailure: true },
      );
      expect(counted.accepted).toBeGreaterThan(bodyCount / 20);
      expect(counted.accepted + counted.refused).toBe(bodyCount);
      expect(upstream.seen).toHaveLength(counted.accepted);
      expect(
        upstream.seen.every((seen) => (JSON.parse(seen.body) as { model: string }).model === 'tiny'),
      ).toBe(true);
      expect(({} as { x?: number }).x).toBeUndefined();
      expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
    },
    timeoutMs,
  );
});
