import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { noSession } from './session.ts';

/** Who is logged in, for all that is shown. */
export const SessionContext = createContext(noSession);

/** Whether who is logged in may change something. */
export function useMayChange(): boolean {
  return useContext(SessionContext).role === 'admin';
}
