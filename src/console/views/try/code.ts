import { bodyOf, protocols } from './request.ts';
import type { TryRequest } from './request.ts';

/** The languages in which the same request is written for a caller: name and title. */
export const languages = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['typescript', 'TypeScript'],
] as const;

export type Language = (typeof languages)[number][0];

/** A request as its key's holder sends it: the address and the key are in variables of the environment. */
export function writeCode(request: TryRequest, language: Language): string {
  switch (language) {
    case 'curl':
      return curlLine(request);
    case 'python':
      return pythonCode(request);
    case 'typescript':
      return typescriptCode(request);
  }
}

function curlLine(request: TryRequest): string {
  return [
    `curl ${request.isStreamed ? '-N ' : ''}"$TEXTGATE_URL/v1/${protocols[request.protocol].path}" \\`,
    '  -H "Authorization: Bearer $TEXTGATE_KEY" -H \'Content-Type: application/json\' \\',
    `  -d ${quote(JSON.stringify(bodyOf(request)))}`,
  ].join('\n');
}

/** Quotes a text for a shell, which reads nothing within single quotes but their end. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** How the SDKs name a call, and where its text is: of a whole answer, and of each part of a stream. */
const calls = {
  chat: { name: 'chat.completions.create', whole: 'answer.choices[0].message.content' },
  responses: { name: 'responses.create', whole: 'answer.output_text' },
} as const;

function pythonCode(request: TryRequest): string {
  const { name, whole } = calls[request.protocol];
  const given = Object.entries(bodyOf(request)).filter(([, value]) => value !== undefined);
  const isChat = request.protocol === 'chat';
  const streamed = isChat
    ? [
        '    if part.choices and part.choices[0].delta.content:',
        '        print(part.choices[0].delta.content, end="", flush=True)',
      ]
    : ['    if part.type == "response.output_text.delta":', '        print(part.delta, end="", flush=True)'];
  return [
    'import os',
    'from openai import OpenAI',
    '',
    'client = OpenAI(',
    '    base_url=os.environ["TEXTGATE_URL"] + "/v1",',
    '    api_key=os.environ["TEXTGATE_KEY"],',
    ')',
    `answer = client.${name}(`,
    ...given.map(([field, value]) => `    ${field}=${pythonValue(value)},`),
    ')',
    ...(request.isStreamed ? ['for part in answer:', ...streamed] : [`print(${whole})`]),
  ].join('\n');
}

/** A value of a body in Python, whose strings are as those of JSON. */
function pythonValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([name, field]) => `"${name}": ${pythonValue(field)}`);
    return `{${fields.join(', ')}}`;
  }
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);
}

function typescriptCode(request: TryRequest): string {
  const { name, whole } = calls[request.protocol];
  const body = JSON.stringify(bodyOf(request), null, 2);
  const streamed =
    request.protocol === 'chat'
      ? "  process.stdout.write(part.choices[0]?.delta.content ?? '');"
      : "  if (part.type === 'response.output_text.delta') process.stdout.write(part.delta);";
  return [
    "import OpenAI from 'openai';",
    '',
    'const client = new OpenAI({',
    '  baseURL: `${process.env.TEXTGATE_URL}/v1`,',
    '  apiKey: process.env.TEXTGATE_KEY,',
    '});',
    `const answer = await client.${name}(${body});`,
    ...(request.isStreamed
      ? ['for await (const part of answer) {', streamed, '}']
      : [`console.log(${whole.replace('[0]', '[0]?')});`]),
  ].join('\n');
}
