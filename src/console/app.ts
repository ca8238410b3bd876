import type { PresentedSession } from '../http/present/session.ts';
import { endSession, openSession, readSession } from './session.ts';

/** What a role is called on the page. */
const roleWords: Readonly<Record<NonNullable<PresentedSession['role']>, string>> = {
  admin: 'with the admin token',
  read_only: 'with the read-only token, which changes nothing,',
};

/** The element of the page with an id. Throws if the page has none, which would be another version of it. */
function element<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`the page has no ${id}`);
}

const login = element('login', HTMLFormElement);
const token = element('token', HTMLInputElement);
const section = element('session', HTMLElement);
const role = element('role', HTMLElement);
const expiry = element('expiry', HTMLTimeElement);
const message = element('message', HTMLElement);

/** Shows who is logged in, or the login. Texts are set as texts, so that none of them can become markup. */
function show(session: PresentedSession): void {
  login.hidden = session.role !== null;
  section.hidden = session.role === null;
  if (session.role === null || session.expires_at === null) return token.focus();
  role.textContent = roleWords[session.role];
  expiry.dateTime = session.expires_at;
  expiry.textContent = new Date(session.expires_at).toLocaleString();
}

/** Runs what a person asked for, and shows why it failed. */
async function run(action: () => Promise<PresentedSession>): Promise<void> {
  message.textContent = '';
  try {
    show(await action());
  } catch (error) {
    message.textContent = error instanceof Error ? error.message : String(error);
    token.focus();
  }
}

login.addEventListener('submit', (event) => {
  event.preventDefault();
  const given = token.value;
  // The token must not stay in the page, where whatever comes later could read it.
  token.value = '';
  void run(() => openSession(given));
});
element('logout', HTMLButtonElement).addEventListener('click', () => void run(endSession));
void run(readSession);
