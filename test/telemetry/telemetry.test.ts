import { expect, test } from 'vitest';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { summary } from '../support/exchange-summary.ts';

test('every sink gets the reports that it has a use for, though another sink throws', () => {
  const received: unknown[] = [];
  const faults: unknown[] = [];
  const broken = (): never => {
    throw new Error('broken');
  };
  const telemetry = createTelemetry(
    [
      { exchangeBegan: broken, streamOpened: broken, exchangeEnded: broken },
      { exchangeEnded: (ended) => void received.push(ended) },
      {
        exchangeBegan: (protocol) => void received.push(['began', protocol]),
        streamOpened: (protocol) => void received.push(['opened', protocol]),
      },
    ],
    (...fault) => void faults.push(fault),
  );
  telemetry.exchangeBegan('chat');
  telemetry.streamOpened('chat');
  telemetry.exchangeEnded(summary);
  expect(received).toEqual([['began', 'chat'], ['opened', 'chat'], summary]);
  const fault = ['recording metrics or writing the log failed', new Error('broken')];
  expect(faults).toEqual([fault, fault, fault]);
});
