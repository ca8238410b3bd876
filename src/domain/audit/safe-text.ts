import { isKeyShaped } from '../../protocol/upstream/words/secret-shapes.ts';
import { fingerprintOf } from './differences.ts';

declare const safe: unique symbol;

/**
 * A text of a line of the audit, which the read-only token shows: only this file makes one, so that no act can note what
 * a client wrote as it is, which may be a key in the place of an id or of a name.
 */
export type SafeText = string & { readonly [safe]: true };

/** The forms of ids of keys, requests and events, none of which is a secret. */
const ownId = /^(?:key_[A-Za-z0-9]{12}|(?:req|evt)_[0-9a-f]{32})$/;

const words = /[^\s"'`()[\]{}<>,;|=&:?#\\]+/g;

/** What a client sent as an id, if it has the form of one; `null` for any other text, which may be a secret. */
export function idIn(text: unknown): SafeText | null {
  return typeof text === 'string' && ownId.test(text) ? (text as SafeText) : null;
}

/** The name of what is there, which operators are shown anyway. */
export function nameOf(existing: string): SafeText {
  return existing as SafeText;
}

/** A text with `[key]` in place of each word that looks like a key. */
export function withoutKeys(text: string): SafeText {
  return text.replaceAll(words, (word) =>
    !ownId.test(word) && isKeyShaped(word) ? '[key]' : word,
  ) as SafeText;
}

/** An address with the fingerprint behind it of what is not shown of it. */
const withFingerprint = /^(\S+) (sha256:[0-9a-f]{12})$/;

/**
 * The origin of an address, and a fingerprint of all of it where it has more: user, path and query may be a secret, as those
 * of a webhook. What was shortened before, also with its path, as earlier versions did it, keeps its fingerprint.
 */
export function originAlone(address: string): string {
  const [, text = address, fingerprint] = withFingerprint.exec(address) ?? [];
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return address;
  const isWhole = fingerprint === undefined && url.href === `${url.origin}/`;
  return isWhole ? url.origin : `${url.origin} ${fingerprint ?? fingerprintOf(url.href)}`;
}
