import { chatFrames, sendStream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';

/** A stream that the test ends: some of its text has been sent. */
export interface HeldStream {
  /** Sends one more frame. */
  say(): void;
  /** Sends the rest and ends. */
  finish(): void;
  readonly isCut: () => boolean;
}

/** Has an upstream begin a stream with the first text; resolves with it once a client has asked. */
export function holdStream(upstream: ScriptedUpstream, texts: readonly string[]): Promise<HeldStream> {
  const held = Promise.withResolvers<HeldStream>();
  const frames = chatFrames(texts);
  upstream.play((response) => {
    let isCut = false;
    let said = 2;
    response.on('close', () => (isCut = !response.writableFinished));
    sendStream(response, frames.slice(0, 2));
    held.resolve({
      say() {
        response.write(frames[said++] ?? '');
      },
      finish: () => void response.end(frames.slice(said).join('')),
      isCut: () => isCut,
    });
  });
  return held.promise;
}
