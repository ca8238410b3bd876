import { describe, expect, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { ConfigInput } from '../../src/config/schema/schema.ts';
import { loadYaml, problemsOf } from '../support/config-file.ts';

/** The environment of every file; its values are secrets that no problem may quote. */
const environment = {
  OPENAI_API_KEY: 'sk-canary-of-the-environment',
  EMPTY: '  ',
  BAD_PORT: 'canary-of-the-port',
  BAD_URL: 'canary-of-the-url',
};

const url = 'url: "http://127.0.0.1:8000/v1"';
const upstreams = `upstreams: { local: { ${url} } }\n`;
const models = 'models: { from: local }\n';
const withUpstream = (line: string): string => `upstreams:\n  local:\n    ${url}\n    ${line}\n${models}`;
const withUrl = (text: string): string => `upstreams:\n  local:\n    url: ${JSON.stringify(text)}\n${models}`;
const withSection = (line: string): string => `${upstreams}${models}${line}\n`;
const withModel = (text: string): string => `${upstreams}models:\n  small: ${text}\n`;
const route = 'routes: [{ upstream: local, model: m }]';

/** Mistakes in config files: what each says, which is its cause and what to write instead. */
const mistakes: readonly (readonly [name: string, yaml: string, ...problems: string[]])[] = [
  // References.
  [
    'a hyphen in a reference',
    withUpstream('apiKey: ${OPENAI-API-KEY}'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}? Write $$ for a $ itself',
  ],
  [
    'a reference without braces',
    withUpstream('apiKey: $OPENAI_API_KEY'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}? Write $$ for a $ itself',
  ],
  [
    'blanks in a reference',
    withUpstream('apiKey: ${ OPENAI_API_KEY }'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}?',
  ],
  [
    'parentheses for braces',
    withUpstream('apiKey: $(OPENAI_API_KEY)'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}?',
  ],
  [
    'a blank before the brace',
    withUpstream('apiKey: "$ {OPENAI_API_KEY}"'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}?',
  ],
  [
    'a reference that is not closed',
    withUpstream('apiKey: "${OPENAI_API_KEY"'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: did you mean ${OPENAI_API_KEY}?',
  ],
  [
    'a reference without a name',
    withUpstream('apiKey: "${}"'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: write ${NAME} for an environment variable, or $$ for a $ itself',
  ],
  [
    'a $ in a secret',
    withUpstream('apiKey: canary$word'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: write ${NAME} for an environment variable, or $$ for a $ itself',
  ],
  [
    'a reference without braces in a header',
    withUpstream('headers: { x-key: "Bearer $OPENAI_API_KEY" }'),
    'line 4: upstreams.local.headers.x-key: a $ that begins no reference: did you mean ${OPENAI_API_KEY}?',
  ],
  [
    'a reference without braces in an address',
    withUrl('http://$HOST/v1'),
    'line 3: upstreams.local.url: a $ that begins no reference: write ${NAME}',
  ],
  [
    'a misspelt reference in a name',
    withModel(`{ routes: [{ upstream: local, model: "\${MY MODEL}" }], free: true }`),
    'line 3: models.small.routes[0].model: a $ that begins no reference: did you mean ${MY_MODEL}?',
  ],
  [
    'a default as other programs write it',
    withUpstream('apiKey: ${KEY-none}'),
    'line 4: upstreams.local.apiKey: not a reference: write ${KEY}, or ${KEY:-default}',
  ],
  [
    'a reference inside a default',
    withUpstream('apiKey: "${KEY:-${OTHER}}"'),
    'line 4: upstreams.local.apiKey: not a reference: write ${KEY}, or ${KEY:-default} with a default without $, { and }',
  ],
  [
    'a reference as a key',
    withUpstream('headers: { "${NAME}": x }'),
    'line 4: upstreams.local.headers.…: references are replaced in values only: write the name itself',
  ],
  [
    'a variable that is not set',
    withUpstream('apiKey: ${OPENAI_APIKEY}'),
    'line 4: upstreams.local.apiKey: the environment variable OPENAI_APIKEY is not set; did you mean OPENAI_API_KEY?',
  ],
  [
    'a variable that is empty',
    withUpstream('apiKey: ${EMPTY}'),
    'line 4: upstreams.local.apiKey: the environment variable EMPTY is set but empty: give it a value, or write ${EMPTY:-default}',
  ],
  [
    'a key inside the braces of a reference',
    withUpstream('apiKey: ${sk-canary-12}'),
    'line 4: upstreams.local.apiKey: a $ that begins no reference: write ${NAME}',
  ],
  [
    'a key as the name of a reference',
    withUpstream('apiKey: ${sk_canary_12}'),
    'line 4: upstreams.local.apiKey: the environment variable in these braces is not set',
  ],
  [
    'a key in capitals as the name of a reference',
    withUpstream('apiKey: ${AKIACANARY7EXAMPLE12}'),
    'line 4: upstreams.local.apiKey: the environment variable in these braces is not set',
  ],
  [
    'variables with wrong values',
    `upstreams: { local: { url: "\${BAD_URL}" } }\n${models}server: { port: "\${BAD_PORT}" }`,
    'line 1: upstreams.local.url: expected an address such as http://127.0.0.1:8000/v1',
    'line 3: server.port: expected a number, not a text: write for example 8080',
  ],
  // YAML.
  [
    'a reference in braces without quotes',
    `upstreams: { local: { ${url}, apiKey: \${OPENAI_API_KEY} } }\n${models}`,
    'line 1, column 64: a reference inside braces or brackets without quotes: put it in quotes, "${OPENAI_API_KEY}"',
  ],
  [
    'a reference in brackets without quotes',
    `${upstreams}models: { from: local, allow: [ \${OPENAI_API_KEY} ] }`,
    'line 2, column 33: a reference inside braces or brackets without quotes: put it in quotes',
  ],
  [
    'the same key twice',
    `${upstreams}${models}server: {}\n${upstreams}${models}`,
    'line 4, column 1: the same key twice in one object: leave one of them out',
    'line 5, column 1: the same key twice in one object',
  ],
  [
    'tabs',
    `upstreams:\n\tlocal: { ${url} }\n${models}`,
    'line 2, column 1: tabs are not allowed as indentation: write blanks',
  ],
  [
    'uneven indentation',
    `upstreams:\n    local: { ${url} }\n  other: { ${url} }\n${models}`,
    'line 3, column 1: wrong indentation: the keys of one object begin in the same column',
  ],
  [
    'a line that is indented further than the one before it',
    withSection('server:\n  host: 127.0.0.1\n   port: 8080'),
    'line 4, column 9: wrong indentation: the keys of one object begin in the same column',
  ],
  [
    'no blank after the colon of a section',
    withSection('server:\n  port:33200'),
    'line 3: server: expected an object, not a text: write a blank after the colon',
  ],
  [
    'a key without its settings',
    withSection('keys: { c: "sk-canary" }'),
    'line 3: keys.c: expected an object, not a text: write for example { key: "${BOBS_KEY}" }',
  ],
  [
    'a reference in double braces',
    withUpstream('apiKey: {{OPENAI_API_KEY}}'),
    'line 4: upstreams.local.apiKey: braces make an object of it: write "${NAME}" for an environment variable',
  ],
  ['too many levels', withSection(`server: ${'{ a: '.repeat(20_000)}`), 'nested too deeply'],
  [
    'many levels, which can be parsed',
    withSection(`server: ${'['.repeat(200)}${']'.repeat(200)}`),
    'nested too deeply',
  ],
  [
    'an alias without an anchor',
    withUpstream('apiKey: *sk-canary-of-the-file'),
    'line 4, column 13: a value that begins with * is an alias, and no anchor (&name) before it has its name: put the value in quotes',
  ],
  [
    'a merge key',
    'upstreams: { local: &base { url: "http://127.0.0.1:8000/v1" } }\nmodels:\n  <<: *base\n  from: local\n',
    'line 3, column 3: << is the merge key of YAML 1.1, which is not read: write the settings out, or use an alias (*name) for a whole value',
  ],
  [
    'an anchor that contains itself',
    'upstreams: &all { local: *all }',
    'an alias (*name) is inside its own anchor (&name), or repeats too much text',
  ],
  [
    'a tag',
    withUpstream('apiKey: !sk-canary-of-the-file'),
    'line 4, column 13: a value that begins with ! is a tag, and there are none: write ${NAME}',
  ],
  [
    'a reserved character',
    withUpstream('apiKey: "k"\n    authHeader: @canary'),
    "line 5, column 17: a value can't begin with this character: put it in quotes",
  ],
  [
    'a quote that is not closed',
    withUpstream('apiKey: "sk-canary'),
    'not valid YAML: Missing closing "quote',
  ],
  [
    'a brace that is not closed',
    `upstreams: { local: { ${url} }\n${models}`,
    'line 2, column 1: not valid YAML: Flow map in block collection must be sufficiently indented and end with a }',
  ],
  [
    'a colon in a value',
    withUpstream('apiKey: sk: canary'),
    'line 4, column 13: not valid YAML: Nested mappings are not allowed in compact mappings',
  ],
  [
    'several documents',
    `${upstreams}${models}---\n${upstreams}`,
    'line 3, column 1: the file has several documents, which --- separates: a config is one of them',
  ],
  [
    'no blank after a colon',
    `upstreams: { local: { ${url}, apiKey:canary } }\n${models}`,
    'upstreams.local.apiKey:…: unknown key: write a blank after the colon',
  ],
  [
    'a $ after a colon without a blank',
    `upstreams: { local: { ${url}, apiKey:canary: $x } }\n${models}`,
    'upstreams.local.apiKey:…: unknown key: write a blank after the colon',
  ],
  [
    'an equals sign for a colon',
    withUpstream('headers: {}\n    apiKey=sk-canary-of-the-file:'),
    'line 5: upstreams.local.apiKey=…: unknown key: write a colon and a blank before the value',
  ],
  [
    'a blank for a colon',
    `upstreams: { local: { ${url}, apiKey sk-canary-of-the-file } }\n${models}`,
    'line 1: upstreams.local.apiKey …: unknown key: write a colon and a blank before the value',
  ],
  [
    'a key in braces',
    withUpstream('apiKey: { sk-canary-of-the-file }'),
    'line 4: upstreams.local.apiKey: braces make an object of it: put a text in quotes',
  ],
  [
    'a misspelt policy',
    withModel(`{ ${route}, free: true, policy: fastst }`),
    `line 3: models.small.policy: expected "order" or "least_in_flight" or "fastest" or "cheapest" or "affinity"; did you mean 'fastest'?`,
  ],
  [
    'a policy that resembles none',
    withModel(`{ ${route}, free: true, policy: round_robin }`),
    'line 3: models.small.policy: expected "order" or "least_in_flight" or "fastest" or "cheapest" or "affinity"',
  ],
  [
    'a misspelt value in a list',
    withUpstream('dialects: [Chat, antropic]'),
    `line 4: upstreams.local.dialects[0]: expected "chat" or "responses" or "anthropic" or "gemini"; did you mean 'chat'?`,
    `line 4: upstreams.local.dialects[1]: expected "chat" or "responses" or "anthropic" or "gemini"; did you mean 'anthropic'?`,
  ],
  [
    'a percentage without its sign',
    withModel(`{ ${route}, free: true, hedge: { budget: 5 } }`),
    'line 3: models.small.hedge.budget: neither a percentage nor a number from 0 to 1: write 5% or 0.05',
  ],
  [
    'a command in one text',
    withUpstream('apiKey: { command: gcloud auth }'),
    'line 4: upstreams.local.apiKey.command: expected a list, not a text: write for example [ gcloud, auth, print-access-token ]',
  ],
  [
    'a misspelt command',
    withUpstream('apiKey: { comand: [gcloud] }'),
    'line 4: upstreams.local.apiKey.command: missing: expected a list, for example [ gcloud, auth, print-access-token ]',
    "line 4: upstreams.local.apiKey.comand: unknown key; did you mean 'command'?",
  ],
  [
    'a command and a file',
    withUpstream('apiKey: { command: [gcloud], file: /nowhere }'),
    'line 4: upstreams.local.apiKey.command: not together with the other keys here: leave out either',
    'line 4: upstreams.local.apiKey.file: there is no such file',
  ],
  [
    'a header in one text',
    withUpstream('headers: { "Authorization: Bearer sk-canary-of-the-file": "" }'),
    'line 4: upstreams.local.headers.Authorization:…: expected a header name',
  ],
  [
    'no blank after the colon of a header',
    withUpstream('headers: { X-Key:Canary7Kq3vT9Lm: "" }'),
    'line 4: upstreams.local.headers.X-Key:…: expected a header name',
  ],
  [
    'a secret as the name of a declared key',
    withSection('keys: { sk-canary-of-the-file: {} }'),
    'line 3: keys.….key: missing',
  ],
  [
    'a backslash in double quotes',
    withUpstream('apiKey: "sk-\\Ucanary7"'),
    'line 4, column 17: a backslash in double quotes begins an escape sequence, and there is none like this: write two backslashes',
  ],
  [
    'a line that begins with a percent sign',
    `%canary of a text\n---\n${upstreams}${models}`,
    'line 1, column 1: a line that begins with % is a directive, and there are none: put a value in quotes',
  ],
  ['an empty file', '', 'the file is empty: a config needs upstreams and models, such as\nupstreams: {'],
  ['a file of comments', '# server: {}\n', 'the file is empty'],
  ['a text', 'canary of a text', 'line 1: config: expected an object, not a text'],
  ['a list', '- upstreams\n- models\n', 'line 1: config: expected an object, not a list'],
  // Values.
  [
    'numbers without a unit',
    withSection('server: { drain: 25, maxBody: 1048576 }'),
    'line 3: server.drain: expected a duration, not a number: write 25s or 25ms',
    'line 3: server.maxBody: expected a size, not a number: write 1MiB',
  ],
  [
    'numbers below 0 where a unit, or quotes, would not help',
    withSection('server: { drain: -5, maxBody: -1, timeouts: { unread: -5 } }\nlimits: { lowBalance: -1 }'),
    'server.drain: expected a duration, not a number: write for example 25s',
    'server.maxBody: expected a size, not a number: write for example 1MiB',
    'server.timeouts.unread: expected a duration, not a number: write for example 30s',
    'limits.lowBalance: expected USD as a decimal number with at most 9 digits after the point',
  ],
  [
    'a time for unread answers without an end, and no folder for the token',
    withSection('server: { timeouts: { unread: never } }\nadmin: { tokenFolder: "" }'),
    'server.timeouts.unread: expected a duration such as 250ms, 5s or 10m',
    'admin.tokenFolder: expected the path of a folder',
  ],
  [
    'a time for unread answers that is out of bounds',
    withSection('server: { timeouts: { unread: 2h } }'),
    'server.timeouts.unread: expected a duration from 100ms to 1h',
  ],
  [
    'a small number as a size',
    withSection('server: { maxBody: 10 }'),
    'server.maxBody: expected a size, not a number: write 10MiB or 10KiB',
  ],
  [
    'a unit that does not exist',
    withSection('limits: { queueWait: 5 seconds }'),
    'limits.queueWait: expected a duration such as 250ms, 5s or 10m',
  ],
  [
    'a size of nothing',
    withSection('server: { maxBody: 0B }'),
    'server.maxBody: expected a size above 0 such as 64KiB or 1MiB',
  ],
  [
    'timeouts as one number',
    withUpstream('timeouts: 30'),
    'line 4: upstreams.local.timeouts: expected an object, not a number',
  ],
  [
    'a timeout of zero',
    withUpstream('timeouts: { connect: 0s }'),
    'upstreams.local.timeouts.connect: expected more than 0',
  ],
  [
    'a price that is no number',
    withModel(`{ ${route}, price: { input: cheap, output: "0,60" } }`),
    'line 3: models.small.price.input: expected USD as a decimal number with at most 9 digits after the point, such as "0.15"',
    'line 3: models.small.price.output: expected USD',
  ],
  [
    'a negative price',
    withModel(`{ ${route}, price: { input: -0.15, output: 0.6 } }`),
    'models.small.price.input: expected USD as a decimal number',
  ],
  [
    'neither a price nor free',
    withModel(`{ ${route} }`),
    'line 3: models.small: expected either a price or free: true',
  ],
  [
    'both a price and free',
    withModel(`{ ${route}, price: { input: 1, output: 1 }, free: true }`),
    'line 3: models.small: expected either a price or free: true',
  ],
  [
    'free: false',
    withModel(`{ ${route}, free: false, price: { input: 1, output: 1 } }`),
    'models.small.free: expected true: leave the key out otherwise',
  ],
  [
    'a port that is a word',
    withSection('server: { port: http }'),
    'server.port: expected a number, not a text: write for example 8080',
  ],
  ['a port out of range', withSection('server: { port: 80800 }'), 'server.port: expected 65535 or less'],
  [
    'a switch in a text',
    withUpstream('apiKey: true'),
    'line 4: upstreams.local.apiKey: expected a text, not true or false: write it in quotes',
  ],
  [
    'a secret of digits',
    withUpstream('apiKey: 1234567890'),
    'line 4: upstreams.local.apiKey: expected a text, not a number: write it in quotes',
  ],
  [
    'a number in a text',
    withModel('{ routes: [{ upstream: local, model: 4.10 }], free: true }'),
    'models.small.routes[0].model: expected a text, not a number: write it in quotes, "4.1"',
  ],
  [
    'a key without a value',
    withUpstream('apiKey:'),
    'line 4: upstreams.local.apiKey: expected a text, not null: write for example "${OPENAI_API_KEY}"',
  ],
  [
    'a word for a list',
    withUpstream('dialects: anthropic'),
    'line 4: upstreams.local.dialects: expected a list, not a text: write for example [ chat ]',
  ],
  [
    'an unknown dialect',
    withUpstream('dialects: [openai]'),
    'upstreams.local.dialects[0]: expected "chat" or "responses" or "anthropic" or "gemini"',
  ],
  [
    'an address in place of an upstream',
    `upstreams: { local: "http://x/v1" }\n${models}`,
    'line 1: upstreams.local: expected an object, not a text: write for example { url: http://127.0.0.1:8000/v1 }',
  ],
  [
    'a name in place of routes',
    withModel('{ routes: local, free: true }'),
    'models.small.routes: expected a list, not a text: write for example [ { upstream: local, model: qwen3-0.6b } ]',
  ],
  [
    'an unknown policy',
    withModel('{ policy: quickest, routes: [{ upstream: local, model: x }], free: true }'),
    'models.small.policy: expected "order" or "least_in_flight" or "fastest" or "cheapest" or "affinity"',
  ],
  [
    'no cost at a route of the cheapest policy',
    withModel('{ policy: cheapest, routes: [{ upstream: local, model: x }], free: true }'),
    'models.small.routes[0].cost: expected a cost, because the policy is cheapest',
  ],
  [
    'a short admin token',
    withSection('admin: { token: canary }'),
    'admin.token: expected 16 characters or more',
  ],
  [
    'the same header twice',
    withUpstream('headers: { X-Org: a, x-org: b }'),
    'line 4: upstreams.local.headers.x-org: expected each header only once',
  ],
  // Names.
  [
    'misspelt keys',
    withSection('server: { prot: 1 }\nlimit: {}'),
    "line 3: server.prot: unknown key; did you mean 'port'?",
    "line 4: limit: unknown key; did you mean 'limits'?",
  ],
  [
    'a misspelt price',
    withModel(`{ ${route}, price: { inptu: 1, output: 1 } }`),
    'models.small.price.input: missing: expected USD as a decimal string, for example "0.15"',
    "models.small.price.inptu: unknown key; did you mean 'input'?",
  ],
  [
    'a misspelt upstream',
    `${upstreams}models: { from: lokal }`,
    "line 2: models.from: no upstream has this name; did you mean 'local'?",
  ],
  ['no models', upstreams, 'line 1: models: missing: expected an object, for example { small: {'],
  // Addresses.
  [
    'an endpoint in an address',
    withUrl('http://x/v1/chat/completions'),
    'line 3: upstreams.local.url: expected the base address, without an endpoint: leave out /chat/completions',
  ],
  [
    'an endpoint of Gemini',
    withUrl('https://x/v1beta/models/canary:generateContent'),
    'upstreams.local.url: expected the base address, without an endpoint: leave out /models/<model>:generateContent',
  ],
  [
    'an address without a scheme',
    withUrl('localhost:8000/v1'),
    'line 3: upstreams.local.url: expected http:// or https:// before the host',
  ],
  [
    'an address without a host',
    withUrl('http:///v1'),
    'line 3: upstreams.local.url: expected an address such as http://127.0.0.1:8000/v1: the host is missing',
  ],
  [
    'a name of a model with control characters',
    'upstreams: { local: { url: "demo:" } }\nmodels:\n  "m\\e[31m": { routes: [{ upstream: local, model: x }], free: true }',
    'expected a name without control characters',
  ],
  [
    'an address of another scheme',
    withUrl('ws://canary/v1'),
    'upstreams.local.url: expected an address such as http://127.0.0.1:8000/v1, with http:// or https:// at its beginning',
  ],
  [
    'blanks in an address',
    withUrl('http://127.0.0.1:8000/v1 # canary'),
    'upstreams.local.url: expected an address such as http://127.0.0.1:8000/v1, without blanks',
  ],
  [
    'a password in an address',
    withUrl('http://me:canary@x/v1'),
    'upstreams.local.url: expected an address without a user and password: write the key of the upstream into apiKey',
  ],
  [
    'a port in a host',
    withSection('server: { host: "0.0.0.0:8080" }'),
    'line 3: server.host: expected a host name or an IP address, such as 127.0.0.1 or 0.0.0.0: write the port into port',
  ],
  [
    'a socket as a host',
    withSection('server: { host: "unix:/run/canary" }'),
    'line 3: server.host: expected a host name or an IP address, such as 127.0.0.1 or 0.0.0.0: write the path of a unix socket into server.socket',
  ],
  [
    'a port beside a socket',
    withSection('server: { socket: /run/textgate.sock, port: 9000 }'),
    'line 3: server.port: server.socket takes the place of host and port: leave out either',
  ],
  [
    'the mode of a socket that its owner may not use',
    withSection('server: { socket: /run/textgate.sock, socketMode: "066" }'),
    "line 3: server.socketMode: expected octal permissions in quotes that let the owner write, such as '660'",
  ],
  [
    'a socket with a scheme',
    withSection('server: { socket: "unix:/run/canary" }'),
    'line 3: server.socket: expected the path of a file, such as /run/textgate/textgate.sock',
  ],
  [
    'a slash at the end of a base path',
    withSection('server: { basePath: /llm/ }'),
    'line 3: server.basePath: expected a path such as /llm, without a slash at its end',
  ],
  [
    'a version in a base path',
    withSection('server: { basePath: /llm/v1 }'),
    'line 3: server.basePath: leave out the /v1 at the end',
  ],
  [
    'a missing certificate',
    withSection('server: { tls: { cert: /no/such/canary, key: /no/such/canary } }'),
    'line 3: server.tls.cert: there is no such file',
  ],
  [
    'a file that is no certificate',
    withSection('server: { tls: { cert: package.json, key: package.json } }'),
    'line 3: server.tls.cert: expected a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----',
  ],
  [
    'a probe as a passthrough path',
    withSection('passthrough: [{ path: /healthz, upstream: local }]'),
    'passthrough[0].path: this path belongs to the gateway itself',
  ],
  [
    'a scheme in a host',
    withSection('admin: { host: "http://127.0.0.1" }'),
    'line 3: admin.host: expected a host name or an IP address, such as 127.0.0.1 or 0.0.0.0: leave out the scheme',
  ],
  [
    'brackets around a host',
    withSection('server: { host: "[::1]" }'),
    'server.host: expected an IPv6 address without brackets, such as ::1',
  ],
  [
    'two listeners on one port',
    withSection('server: { port: 9000 }\nadmin: { host: 0.0.0.0, port: 9000 }'),
    'line 4: admin.port: the same port as that of the listener for clients: write another one, such as 8081',
  ],
  [
    'a port that the other listener has by default',
    withSection('server: { port: 8081 }'),
    'admin.port: the same port as that of the listener for clients: write another one, such as 8082',
  ],
];

describe('a config file', () => {
  test.each(mistakes)('with %s is refused by its cause and what to write', (_name, yaml, ...expected) => {
    const problems = problemsOf(() => loadYaml(yaml, environment));
    expect(problems).toEqual(expected.map((text) => expect.stringContaining(text)));
    expect(problems.join('\n')).not.toMatch(/canary|1234567890/i);
  });

  test('is refused with all of its problems in the order of its lines', () => {
    const yaml = `${models}limits: { queueWait: 5 }\nupstreams:\n  local:\n    ${url}\n    apiKey: $KEY\nsever: {}\n`;
    const lines = problemsOf(() => loadYaml(yaml, environment)).map((problem) => problem.split(':')[0]);
    expect(lines).toEqual(['line 2', 'line 6', 'line 7']);
  });
});

describe('the config of createGateway', () => {
  test.each(['${OPENAI_API_KEY}', '$OPENAI_API_KEY', ' ${KEY:-none}'])(
    'with the key %s is refused, because references are replaced in files only',
    (apiKey) => {
      const input: ConfigInput = {
        upstreams: { local: { url: 'http://127.0.0.1:8000/v1', apiKey } },
        models: { from: 'local' },
      };
      expect(problemsOf(() => createGateway(input))).toEqual([
        'upstreams.local.apiKey: a reference, which is replaced in config files only: write the value itself',
      ]);
    },
  );

  test('with a number as a price is refused by what to write', () => {
    const input: unknown = {
      upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
      models: { small: { routes: [{ upstream: 'local', model: 'm' }], price: { input: 1e-7, output: 0.6 } } },
    };
    expect(problemsOf(() => createGateway(input as ConfigInput))).toEqual([
      'models.small.price.input: expected USD as a decimal string, not a number: write "0.0000001", because a number can lose digits',
      'models.small.price.output: expected USD as a decimal string, not a number: write "0.6", because a number can lose digits',
    ]);
  });
});
