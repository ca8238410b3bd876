/** The path of the style sheet among the pages. */
export const stylePath = 'style.css';

export const style = `:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 22%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 52rem; padding: 1rem 1.25rem 4rem; }
nav { align-items: center; border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: .5rem 1rem; padding-bottom: .5rem; }
nav form { margin-left: auto; }
nav input { font: inherit; }
pre { border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: .75rem; }
code { font: .9em ui-monospace, monospace; }
.table { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
img { background: white; max-width: 100%; }
h2, h3 { margin-top: 2em; }
`;
