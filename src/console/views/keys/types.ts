import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { PresentedList } from '../../../http/present/list.ts';
import type { ManagedKey, PresentedGroup } from '../../../http/present/managed-key.ts';

/** A key as the admin API shows it. */
export type Key = ManagedKey;

/** A group of the config, with what its keys share. */
export type Group = PresentedGroup;

/** A budget in its current period. */
export type Budget = NonNullable<Key['budget']>;

/** A page of a list. */
export type Page<Entry> = PresentedList<Entry>;

/** A secret that was just made, which the gateway never shows again. */
export interface Issued {
  readonly keyId: string;
  readonly keyName: string;
  readonly secret: string;
}

/** The states of a key by their names in the admin API. */
export const keyStates = ['active', 'revoked', 'expired'] as const;

/** The state of a key now. */
export function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: Key): (typeof keyStates)[number] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}

const moods = { active: 'good', revoked: 'plain', expired: 'warning' } as const;

/** The state of a key, in words and in a colour, and whether the config declares it. */
export function KeyState({ of }: { readonly of: Key }): VNode {
  const state = stateOf(of);
  return html`
    <span class=${`badge ${moods[state]}`}>${state}</span>
    ${of.declared && html`${' '}<span class="badge plain">declared</span>`}
  `;
}
