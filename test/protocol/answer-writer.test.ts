import { expect, test } from 'vitest';
import { writeRefusal } from '../../src/protocol/answer-writer.ts';
import { refuse } from '../../src/shared/errors.ts';

test('writeRefusal writes the OpenAI error envelope', () => {
  expect(writeRefusal(refuse('invalid_type', 'wrong', { param: 'model' }))).toBe(
    '{"error":{"message":"wrong","type":"invalid_request_error","param":"model","code":"invalid_type"}}',
  );
});
