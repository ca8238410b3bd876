/** One server-sent event of our writers: `data` is parsed, except for `[DONE]`. */
export interface Frame {
  readonly name: string | null;
  readonly data: Record<string, unknown> | '[DONE]';
}

/** Reads a writer's output strictly: complete frames of at most one `event:` line and exactly one `data:` line. */
export function parseFrames(text: string): Frame[] {
  if (text === '') return [];
  if (!text.endsWith('\n\n')) throw new Error('the last frame is incomplete');
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((block) => {
      const match = /^(?:event: ([^\r\n]+)\n)?data: ([^\r\n]+)$/.exec(block);
      if (match === null) throw new Error(`not a frame: ${block}`);
      const [, name = null, data = ''] = match;
      return { name, data: data === '[DONE]' ? data : (JSON.parse(data) as Record<string, unknown>) };
    });
}
