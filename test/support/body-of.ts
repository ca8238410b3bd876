import type { BodyPiece, TakePiece, UpstreamAnswer } from '../../src/domain/ports/upstreams.ts';

/** Both ways to take a body, over one function that reads its next piece; nothing follows its end, and no limit is reported. */
export function bodyOf(
  read: () => Promise<BodyPiece>,
): Pick<UpstreamAnswer, 'read' | 'consume' | 'whenOver' | 'limits'> {
  const hand = async (take: TakePiece): Promise<void> => {
    for (let piece = await read(); take(piece) && piece instanceof Uint8Array;) piece = await read();
  };
  return { read, consume: (take) => void hand(take), whenOver: (callback) => callback(), limits: null };
}
