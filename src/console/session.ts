import type { PresentedSession } from '../http/present/session.ts';

/** The path of the session, from that of the page. */
const path = 'session';

/** Asks who is logged in. */
export async function readSession(): Promise<PresentedSession> {
  return (await answerOf(await fetch(path))) as PresentedSession;
}

/** Logs in: the session is in a cookie that no script can read. Throws what the gateway says against it. */
export async function openSession(token: string): Promise<PresentedSession> {
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  };
  return (await answerOf(await fetch(path, request))) as PresentedSession;
}

/** Logs out. */
export async function endSession(): Promise<PresentedSession> {
  const response = await fetch(path, { method: 'DELETE' });
  if (!response.ok) await answerOf(response);
  return { role: null, expires_at: null };
}

/** The JSON of an answer. Throws the message of a refusal. */
async function answerOf(response: Response): Promise<unknown> {
  const body: unknown = await response.json();
  if (response.ok) return body;
  throw new Error((body as { error: { message: string } }).error.message);
}
