/** What stands in a message in place of something that it must not show. */
export type Mark = '[key]' | '[text]' | '[url]' | '[host]' | '[email]' | '[path]' | '[id]';

/** A part of a message that must not be shown: it begins at `start` and ends before `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly mark: Mark;
}

/** The beginnings of API keys and tokens of providers and code hosts. */
export const keyPrefix =
  /(?:^|[^A-Za-z0-9])(?:(?:sk|rk|pk|ak|csk|dsk|sess)[-_][\w*.…•-]|gsk_|xai-|hf_|nvapi-|pplx-|r8_|gh[opsu]_|github_pat_|glpat-|xox[abeprs]-|fw_|tgp_|AIza|ya29\.|(?:AKIA|ASIA)[A-Z0-9]{8}|eyJ[A-Za-z0-9_-]{8})/i;

/** A key with its middle starred out. */
const starred = /\*{3}|[A-Za-z]\*{2}[A-Za-z0-9]|•{2}|[A-Za-z0-9]x{6,}[A-Za-z0-9]|[xX]{8}/;

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/** Names of accounts and their parts. Other objects' ids must have a digit or a capital: `request_too_large` is none. */
const accountId = /^(?:org|proj|acct|cus|sub|wrkspc|tenant|ocid1)[-_.][\w.-]{6,}$/i;
const objectId =
  /^(?:org|proj|project|acct|account|req|request|user|usr|resp|chatcmpl|cmpl|msg|run|thread|asst|file|batch|key|team|workspace|session|trace|gen|call|inst|dep|deployment|endpoint|svc|res)[-_](?=.*[\dA-Z])[\w-]{4,}$/;

/** The path of a resource in a cloud account. */
const resourcePath =
  /^\/?(?:projects?|organizations?|accounts?|subscriptions?|resourceGroups|deployments?|endpoints?|folders|workspaces?|tenants?|users?)\/[^/]/i;
const arn = /^(?:arn|urn|crn):/i;

/** Nine digits or more: token counts have at most eight, account and project numbers have ten or twelve. */
const longNumber = /\d{9}/;
const hexId = /^(?=.*\d)[0-9a-f]{16,}(?:-[A-Z]{3})?$/i;

const ipv4 = /(?:^|[^\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)/;
const ipv6 = /^[0-9a-f:.]+(?:%\w+)?(?:\/\d+)?$/i;

/** Top-level domains of providers and of private networks, and the country codes that are no word or file ending. */
const domain =
  /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.(?:com|net|org|io|ai|dev|app|cloud|co|info|biz|xyz|tech|run|gov|edu|int|arpa|local|internal|intranet|lan|corp|home|private|svc|cluster|consul|localdomain|example|test|invalid|onion|us|eu|uk|de|fr|cn|jp|kr|ru|ch|nl|se|fi|dk|pl|cz|pt|ie|es|it|br|ca|au|nz|sg|hk|tw|tr|za|mx|gg|cc|me)\.?$/i;
const hostPort = /^([a-z0-9_.-]+):\d{2,5}$/i;

const apiPath =
  /^\/(?:(?:v\d\w*|api|openai|chat|completions|responses|messages|models|embeddings)(?:\/|$|\?))+$/;
const twoSteps = /\/[^/]*\//;
const windowsPath = /^(?:[A-Za-z]:\\|\\\\)/;
const fileEnding =
  /\.(?:py|pyc|js|ts|mjs|rs|go|c|cc|cpp|cu|h|java|rb|sh|so|dll|exe|log|conf|cfg|ini|toml|ya?ml|env|pem|crt|pt|bin|gguf|safetensors|sock|db|sqlite|txt|csv|pdf|docx?|xlsx?)(?::\d+)*$/i;

/** The shapes of single words, in the order in which they are tried. */
const shapes: readonly (readonly [Mark, (word: string) => boolean])[] = [
  ['[url]', (word) => /^www\./i.test(word)],
  ['[email]', (word) => /[\w.+-]@[\w-]/.test(word)],
  ['[key]', (word) => keyPrefix.test(word) || starred.test(word)],
  ['[id]', isId],
  ['[path]', isPath],
  ['[host]', isHost],
  ['[key]', isRandom],
];

/** The mark for a word whose own shape says that it must not be shown: a key, an address, an id or a path. */
export function markOfShape(word: string): Mark | null {
  return shapes.find(([, fits]) => fits(word))?.[0] ?? null;
}

/** Whether a word looks like a key, or has one in it. */
export function isKeyShaped(word: string): boolean {
  return keyPrefix.test(word) || markOfShape(word) === '[key]';
}

/**
 * Whether a name that a client wrote may be shown: it looks like no key, id, address of a page or e-mail address. A path or
 * a host is shown, because names of models look like them, unless there is a key in it.
 */
export function isShownName(name: string): boolean {
  const mark = markOfShape(name);
  return mark === null || ((mark === '[path]' || mark === '[host]') && !isRandom(name));
}

function isId(word: string): boolean {
  if (arn.test(word) || uuid.test(word) || resourcePath.test(word)) return true;
  return accountId.test(word) || objectId.test(word) || hexId.test(word) || longNumber.test(word);
}

/** A file, or a path with two steps or more. Paths of the API itself are no secret. */
function isPath(word: string): boolean {
  if (windowsPath.test(word) || word.startsWith('~/')) return true;
  if (apiPath.test(word)) return false;
  if (domain.test(word.replace(/[/:][^]*/, ''))) return false;
  return twoSteps.test(word) || fileEnding.test(word) || /^\.{0,2}\/\w/.test(word);
}

function isHost(word: string): boolean {
  if (ipv4.test(word)) return true;
  if (word.includes('::') || word.split(':').length > 4) return ipv6.test(word);
  const authority = word.replace(/[/?#][^]*/, '');
  const host = hostPort.exec(authority)?.[1] ?? null;
  if (/^localhost\b/i.test(authority) || domain.test(host ?? authority)) return true;
  // A name without dots before a port may be a field and its value, as in `limit:4096`, unless it has a digit or hyphen.
  return host !== null ? /[\d.-]/.test(host) && /[a-z]/i.test(host) : isDottedHost(authority);
}

/** A name of a private network: three parts or more in lower case, one of them with a digit or a hyphen. */
function isDottedHost(word: string): boolean {
  const labels = word.split('.');
  if (labels.length < 3 || !/^[a-z0-9.-]+$/.test(word)) return false;
  return (
    /^[a-z]{2,}$/.test(labels.at(-1) ?? '') &&
    labels.every((label) => /[a-z]/.test(label)) &&
    labels.some((label) => /[\d-]/.test(label))
  );
}

/** The shortest run of letters and digits that may be a key of an unknown kind. */
const minRandomChars = 20;

/** A character before one of another kind: lower case, upper case, digit. */
const switched = /[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[A-Za-z])/g;

/** Whether a word holds a long run of letters and digits that no name is made of. */
function isRandom(word: string): boolean {
  for (const [run] of word.matchAll(/[A-Za-z0-9+/_~=-]{20,}/g)) {
    const segments = run.split(/[-_/+~=]/);
    const switches = [...run.matchAll(switched)].length;
    if (segments.some(isRandomSegment) || switches / run.length >= 0.3) return true;
  }
  return false;
}

function isRandomSegment(segment: string): boolean {
  const hasDigit = /\d/.test(segment);
  const hasLetter = /[A-Za-z]/.test(segment);
  if (hasDigit && hasLetter) return segment.length >= 16;
  return segment.length >= minRandomChars && !isCamelCase(segment);
}

/** A name such as `ContextWindowExceededError`. */
function isCamelCase(segment: string): boolean {
  return /^[a-z]*(?:[A-Z]+[a-z]{2,})+$/.test(segment) && segment.length / segment.split(/[A-Z]+/).length >= 4;
}
