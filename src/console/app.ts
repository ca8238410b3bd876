import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { onSessionEnd } from './api/admin-api.ts';
import { noSession, readSession } from './api/session.ts';
import type { Session } from './api/session.ts';
import { errorText } from './api/error-text.ts';
import { Login } from './login.ts';
import { Shell } from './shell.ts';
import { Fault } from './widgets/fault.ts';

/** The console: the login, or its views for who is logged in. */
function App(): VNode {
  const [session, setSession] = useState<Session | null>(null);
  const [notice, setNotice] = useState<string | null>(null);
  useEffect(() => {
    readSession().then(setSession, (error: unknown) => setNotice(errorText(error)));
  }, []);
  useEffect(
    () =>
      onSessionEnd(() =>
        setSession((before) => {
          if (before !== null && before.role !== null) setNotice('The session has ended. Log in again.');
          return noSession;
        }),
      ),
    [],
  );
  if (session === null) return html`<main class="narrow"><${Fault} text=${notice} /></main>`;
  const onSession = (next: Session): void => {
    setNotice(null);
    setSession(next);
  };
  return session.role === null
    ? html`<${Login} notice=${notice} onSession=${onSession} />`
    : html`<${Shell} session=${session} onSession=${onSession} />`;
}

render(html`<${App} />`, document.body);
