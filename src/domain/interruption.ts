/**
 * Why a running request is stopped from outside; the reason of its abort signal. `crashed`: an error that nothing caught
 * ends the process.
 */
export type Interruption = 'client_closed' | 'cancelled' | 'drained' | 'crashed';
