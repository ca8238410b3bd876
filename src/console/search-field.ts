import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { goTo, linkTo } from './route.ts';
import { searchedText } from './searched-text.ts';
import { isTyping } from './widgets/is-typing.ts';

/** Searches from anywhere: `/` leads into the field, Enter to what is found. */
export function SearchField(): VNode {
  const field = useRef<HTMLInputElement>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const focusBySlash = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
      event.preventDefault();
      field.current?.focus();
    };
    const forget = (): void => setError(null);
    document.addEventListener('keydown', focusBySlash);
    addEventListener('hashchange', forget);
    return () => {
      document.removeEventListener('keydown', focusBySlash);
      removeEventListener('hashchange', forget);
    };
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const input = field.current;
    if (input === null) return;
    const { text, fault } = searchedText(input.value);
    input.value = fault === null ? input.value : '';
    setError(fault);
    if (text === '') return;
    input.value = '';
    // The focus goes on to what is found.
    input.blur();
    goTo(linkTo('search', null, { q: text }));
  };
  const forgetByEscape = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') setError(null);
  };
  return html`
    <form class="search" role="search" aria-label="Everything" onSubmit=${submit}>
      <input
        ref=${field}
        type="search"
        aria-label="Search keys, groups, models, upstreams and request ids"
        aria-keyshortcuts="/"
        placeholder="Search  /"
        autocomplete="off"
        onInput=${() => setError(null)}
        onKeyDown=${forgetByEscape}
      />
      ${error !== null && html`<p class="notice" role="alert">${error}</p>`}
    </form>
  `;
}
