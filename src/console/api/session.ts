import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { PresentedSession } from '../../http/present/session.ts';
import { callAdmin, openAdmin } from './admin-api.ts';

export type Session = PresentedSession;

/** The path of the session, from that of the page. */
const path = 'session';

/** The state of a page without a login. */
export const noSession: Session = { role: null, name: null, expires_at: null };

/** Asks who is logged in. */
export function readSession(): Promise<Session> {
  return callAdmin(path);
}

/** Logs in: the session is in a cookie that no script can read. Throws what the gateway says against it. */
export function openSession(token: string): Promise<Session> {
  return callAdmin(path, { method: 'POST', body: { token } });
}

const stops = new Set<() => void>();

/** Has a logout stop something first, which the gateway would cut off otherwise. Returns what takes that back. */
export function stopAtLogout(stop: () => void): () => void {
  stops.add(stop);
  return () => stops.delete(stop);
}

/** Logs out. */
export async function endSession(): Promise<Session> {
  for (const stop of stops) stop();
  await openAdmin(path, { method: 'DELETE' });
  return noSession;
}

/** Who is logged in, for all that is shown. */
export const SessionContext = createContext(noSession);

/** Whether who is logged in may change something. */
export function useMayChange(): boolean {
  return useContext(SessionContext).role === 'admin';
}
