/** Who is logged in to the console, as `GET /console/session` says it. Without a session all is `null`. */
export interface PresentedSession {
  readonly role: 'admin' | 'read_only' | null;
  /** The name of the token that the session was opened with. */
  readonly name: string | null;
  /** The end of the session, as an ISO time. */
  readonly expires_at: string | null;
}
