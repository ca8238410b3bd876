/** An error in the form of one kind of provider: the body of an error status. */
export const errorBodies: Readonly<Record<string, (message: string, code: string) => string>> = {
  OpenAI: (message, code) => JSON.stringify({ error: { message, type: code, param: null, code: null } }),
  'vLLM, flat': (message, code) =>
    JSON.stringify({ object: 'error', message, type: code, param: null, code: 400 }),
  'vLLM, nested': (message, code) =>
    JSON.stringify({ error: { message, type: code, param: null, code: 400 } }),
  'FastAPI, a text': (message) => JSON.stringify({ detail: message }),
  'FastAPI, a list': (message, code) =>
    JSON.stringify({ detail: [{ type: code, loc: ['body', 'messages', 0], msg: message, input: message }] }),
  Anthropic: (message, code) =>
    JSON.stringify({
      type: 'error',
      error: { type: code, message },
      request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
    }),
  Gemini: (message, code) =>
    JSON.stringify([
      { error: { code: 400, message, status: code, details: [{ '@type': 'x', domain: message }] } },
    ]),
  Ollama: (message) => JSON.stringify({ error: message }),
  Mistral: (message, code) =>
    JSON.stringify({ object: 'error', message: { detail: [{ msg: message, type: code }] } }),
  OpenRouter: (message, code) =>
    JSON.stringify({
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: { raw: JSON.stringify({ error: { message, code } }), provider_name: 'x' },
      },
    }),
  Cloudflare: (message, code) =>
    JSON.stringify({ success: false, errors: [{ code: 5006, type: code, message }] }),
  AWS: (message, code) => JSON.stringify({ __type: code, message }),
  'problem details': (message) => JSON.stringify({ title: 'Bad Request', status: 400, detail: message }),
  'a text': (message) => message,
  'a web page': (message) =>
    `<!doctype html><html><head><title>${message}</title></head><body>${message}</body></html>`,
};
