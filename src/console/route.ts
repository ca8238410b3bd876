import { useEffect, useState, useRef } from 'preact/hooks';

/** A place in the console: `#/VIEW/ID?QUERY`. */
export interface Route {
  /** The name of the view; empty at the start. */
  readonly view: string;
  /** What the view shows in detail; `null` for its whole. */
  readonly id: string | null;
  readonly query: URLSearchParams;
}

/** Reads a place from the part of an address behind `#`. */
function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const [view = '', id = ''] = path.split('/', 2);
  return { view, id: id === '' ? null : decode(id), query: new URLSearchParams(query) };
}

/** The link to a place. Values that are `null` or empty are left out. */
export function linkTo(
  view: string,
  id: string | null = null,
  query: Readonly<Record<string, string | null>> = {},
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === null || value === '' ? [] : [[name, value]],
  );
  const search = new URLSearchParams(given).toString();
  return `#/${view}${id === null ? '' : `/${encodeURIComponent(id)}`}${search === '' ? '' : `?${search}`}`;
}

/** Goes to a place, as a link does. */
export function goTo(link: string): void {
  location.hash = link;
}

/** The place that the address names, as it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = (): void => setHash(location.hash);
    addEventListener('hashchange', update);
    // The address may have changed between the first drawing and this effect, which runs behind it.
    update();
    return () => removeEventListener('hashchange', update);
  }, []);
  return readRoute(hash);
}

/** A part of an address that someone wrote by hand may not be encoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether what asks is still shown: an answer that comes later must not take a person back to where they were. */
export function useIsHere(): () => boolean {
  const isHere = useRef(true);
  useEffect(
    () => () => {
      isHere.current = false;
    },
    [],
  );
  return () => isHere.current;
}
