import { InvalidArgumentError } from 'commander';

const maxPort = 65_535;

/** Reads a whole number of 1 or more. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number of 1 or more.');
}

/** Reads a TCP port; the system chooses one for 0. */
export function portNumber(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= maxPort) return Number(text);
  throw new InvalidArgumentError(`Expected a port from 0 to ${maxPort}.`);
}
