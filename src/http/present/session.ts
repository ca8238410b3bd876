/** Who is logged in to the console, as `GET /console/session` says it. Without a session both are `null`. */
export interface PresentedSession {
  readonly role: 'admin' | 'read_only' | null;
  /** The end of the session, as an ISO time. */
  readonly expires_at: string | null;
}
