import { expect, test } from 'vitest';
import { describeStartError, serveCommand } from '../../src/cli/serve/describe-start-error.ts';
import { checkConfig } from '../../src/config/load.ts';

/** An error as Node throws it for a system call. */
function systemError(fields: object): Error {
  return Object.assign(new Error('raw'), fields);
}

const describe = (port: number, code: string): string =>
  describeStartError(systemError({ code, syscall: 'listen', port }), {
    config: checkConfig({ server: { port }, upstreams: {}, models: {} }, 'a config'),
    commandWith: (ports) => serveCommand(ports, {}),
  });

test.each([
  [80, 'EACCES', 8_080],
  [443, 'EACCES', 8_443],
  [8_080, 'EADDRINUSE', 8_090],
  [65_530, 'EADDRINUSE', 65_520],
])('a start that fails on port %i with %s suggests port %i', (port, code, other) => {
  expect(describe(port, code)).toMatch(new RegExp(`^port ${port} [^]*\n {2}npm start -- --port ${other}$`));
});

test('the suggested command quotes what a shell would not take as it is', () => {
  const options = { config: "my config's.yaml", host: '::1' };
  expect(serveCommand(options, {})).toBe(String.raw`npm start -- --config 'my config'\''s.yaml' --host ::1`);
});

test('the suggested command has the upstream of the environment, unless it may hold a secret', () => {
  const commandFor = (url: string): string => serveCommand({}, { TEXTGATE_UPSTREAM_URL: url });
  expect(commandFor('http://127.0.0.1:8000/v1')).toBe('npm start -- --upstream http://127.0.0.1:8000/v1');
  expect(commandFor('http://host/v1?key=secret')).toBe('npm start --');
  expect(commandFor('http://user:secret@host/v1')).toBe('npm start --');
});
