import { html, render } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { openSession, noSession, readSession } from './api/session.ts';
import type { Session } from './api/session.ts';
import { errorText, onSessionEnd } from './api/admin-api.ts';
import { Fault } from './widgets/fault.ts';
import { Shell } from './shell.ts';

interface LoginProps {
  /** Why one has to log in again. */
  readonly notice: string | null;
  readonly onSession: (session: Session) => void;
}

/** Asks for a token. */
function Login({ notice, onSession }: LoginProps): VNode {
  const field = useRef<HTMLInputElement>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    document.title = 'Log in – textgate';
    field.current?.focus();
  }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const token = field.current?.value ?? '';
    setError(null);
    // The token must not stay in the page, where whatever comes later could read it.
    if (field.current !== null) field.current.value = '';
    try {
      onSession(await openSession(token));
    } catch (failure) {
      setError(errorText(failure));
      field.current?.focus();
    }
  };
  return html`
    <main class="narrow">
      <h1>textgate console</h1>
      <${Fault} text=${error ?? notice} />
      <form class="login" method="post" action="session" onSubmit=${submit}>
        <div class="field">
          <label for="token">Admin token, or read-only token</label>
          <input
            ref=${field}
            id="token"
            name="token"
            type="password"
            autocomplete="current-password"
            required
            aria-describedby="token-hint"
          />
          <p class="hint" id="token-hint">
            The gateway says at its start in which file it is, unless its config or
            ${' '}<code>TEXTGATE_ADMIN_TOKEN</code>${' '} sets one.
          </p>
        </div>
        <button class="primary">Log in</button>
      </form>
      <p><a href="../docs/">Documentation</a></p>
    </main>
  `;
}

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
