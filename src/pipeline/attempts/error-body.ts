import type { Clock } from '../../domain/ports/clock.ts';
import type { UpstreamAnswer, UpstreamFault } from '../../domain/ports/upstreams.ts';

/** How much of an upstream's error body is read, in UTF-16 code units. */
const maxErrorChars = 65_536;

/**
 * How long reading an error body may take, in milliseconds: one that decides what follows, and one that is only shown to
 * the operator, for which another route must not wait.
 */
const tellingBodyMs = 2_000;
const shownBodyMs = 250;

/** Reads as much of an error body as arrives soon: the status alone would do. Returns a fault if interrupted. */
export async function readErrorBody(
  answer: UpstreamAnswer,
  clock: Clock,
  isTelling: boolean,
): Promise<string | UpstreamFault> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.schedule(isTelling ? tellingBodyMs : shownBodyMs, () => late.resolve(null));
  const decoder = new TextDecoder();
  let text = '';
  try {
    while (text.length < maxErrorChars) {
      const part = await Promise.race([answer.read(), late.promise]);
      if (part === null) break;
      if (!(part instanceof Uint8Array)) {
        if (part.fault === 'interrupted') return part;
        break;
      }
      text += decoder.decode(part, { stream: true });
    }
    return text.slice(0, maxErrorChars);
  } finally {
    cancel();
  }
}
