import { expect, test } from 'vitest';
import { readLogSettings } from '../../src/config/log-settings.ts';

test('the log has the level info, and the format that fits its destination, unless variables set them', () => {
  expect(readLogSettings({})).toEqual({ logLevel: 'info' });
  expect(readLogSettings({ TEXTGATE_LOG: ' ', TEXTGATE_LOG_FORMAT: '' })).toEqual({ logLevel: 'info' });
  expect(readLogSettings({ TEXTGATE_LOG: 'DEBUG', TEXTGATE_LOG_FORMAT: 'json' })).toEqual({
    logLevel: 'debug',
    logFormat: 'json',
  });
});

test('a level or format that does not exist is refused with those that do', () => {
  expect(() => readLogSettings({ TEXTGATE_LOG: 'verbose', TEXTGATE_LOG_FORMAT: 'pretty' })).toThrow(
    /TEXTGATE_LOG: 'verbose' is not one of silent, warn, info, debug\n.*TEXTGATE_LOG_FORMAT: 'pretty' is not one of json, text/,
  );
});
