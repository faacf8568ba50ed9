import { type Attributes, type AttributeValue, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { tracing } from '@opentelemetry/sdk-node';
import { redact } from './redact';

/**
 * Makes an exporter that removes secrets. All spans of this process are sent through it. Whatever an instrumentation
 * has recorded, a statement is sent only in its shape (`maskSql`), and a URL without query and password. Secrets are
 * redacted in every text.
 */
export function createSafeExporter(exporter: tracing.SpanExporter): tracing.SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(safeSpan), done),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Whether a read found nothing. That is an ordinary answer, although instrumentations treat every 4xx as an error. */
const isNothingFound = ({ kind, attributes }: tracing.ReadableSpan): boolean =>
  kind === SpanKind.CLIENT &&
  attributes['http.response.status_code'] === 404 &&
  (attributes['http.request.method'] === 'GET' || attributes['http.request.method'] === 'HEAD');

/**
 * A view of the span with some members replaced. It is no copy, because spans have getters and a class of their own.
 */
function safeSpan(span: tracing.ReadableSpan): tracing.ReadableSpan {
  if (isNothingFound(span)) {
    const { 'error.type': _notOne, ...attributes } = span.attributes;
    const found = { attributes: { value: attributes }, status: { value: { code: SpanStatusCode.UNSET } } };
    return safeTexts(Object.create(span, found));
  }
  return safeTexts(span);
}

function safeTexts(span: tracing.ReadableSpan): tracing.ReadableSpan {
  const { message } = span.status;
  const events = span.events.map((event) => ({
    ...event,
    name: redact(event.name),
    attributes: safeAttributes(event.attributes ?? {}),
  }));
  const links = span.links.map((link) => ({ ...link, attributes: safeAttributes(link.attributes ?? {}) }));
  const status = message === undefined ? span.status : { ...span.status, message: redact(message) };
  return Object.create(span, {
    name: shown(redact(span.name)),
    attributes: shown(safeAttributes(span.attributes)),
    events: shown(events),
    links: shown(links),
    status: shown(status),
  });
}

const shown = <T>(value: T) => ({ value, enumerable: true });

const statementNames: ReadonlySet<string> = new Set(['db.query.text', 'db.statement']);
const urlNames: ReadonlySet<string> = new Set(['url.full', 'http.url', 'http.target', 'url.path']);
/** Attributes that are never sent, because clients may put anything in them. */
const hiddenNames =
  /^(?:http\.(?:request|response)\.header\.|url\.query$|db\.(?:(?:query|operation)\.parameter|postgresql\.values))/;

export function safeAttributes(attributes: Attributes): Attributes {
  const safe: Attributes = {};
  for (const [name, value] of Object.entries(attributes))
    if (!hiddenNames.test(name)) safe[name] = safeValue(name, value);
  return safe;
}

function safeValue(name: string, value: AttributeValue | undefined): AttributeValue | undefined {
  if (typeof value === 'string') return safeText(name, value);
  if (!Array.isArray(value)) return value;
  return value.map((item) => (typeof item === 'string' ? safeText(name, item) : item)) as AttributeValue;
}

function safeText(name: string, text: string): string {
  if (statementNames.has(name)) return safeStatement(text);
  return redact(urlNames.has(name) ? text.replace(/[?#][\s\S]*$/, '') : text);
}

/**
 * Statements of which nothing is removed. A process repeats a few hundred statements, and finding their secrets takes
 * half of the time of a span. A statement from which something is removed is not kept, because it may hold a secret.
 */
const safeStatements = new Set<string>();
const safeStatementsMax = 1_000;

function safeStatement(text: string): string {
  if (safeStatements.has(text)) return text;
  const safe = redact(maskSql(text));
  if (safe === text) {
    if (safeStatements.size >= safeStatementsMax) safeStatements.clear();
    safeStatements.add(text);
  }
  return safe;
}

/** The most characters of a statement that are sent. */
const shownMax = 2_048;

/**
 * The parts of a statement that masking recognises: comments, strings in each of their forms, quoted names, and the end
 * of a statement. A part without its end extends to the end of the text. A quoted name is kept. It is recognised
 * because an apostrophe in it would seem to begin a string.
 */
const pieces = new RegExp(
  [
    /--[^\n]*/,
    /\/\*[\s\S]*?(?:\*\/|$)/,
    /\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?(?:\$\1\$|$)/,
    /\be'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/,
    /'(?:[^']|'')*(?:'|$)/,
    /"(?:[^"]|"")*(?:"|$)/,
    /;/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);

/**
 * The verbs of ordinary statements, such as those that read and write rows, or begin and end transactions. Such a
 * statement is sent whole, without its strings and comments. Its secrets are in its parameters, which are not sent.
 */
const plainVerbs = new Set(
  [
    'select',
    'with',
    'insert',
    'update',
    'delete',
    'merge',
    'values',
    'table',
    'begin',
    'start',
    'commit',
    'rollback',
  ].concat([
    'savepoint',
    'release',
    'fetch',
    'close',
    'listen',
    'unlisten',
    'lock',
    'truncate',
    'analyze',
    'vacuum',
    'show',
    'discard',
  ]),
);
/**
 * The kinds of object that may follow a verb. A statement with a verb that is not in `plainVerbs` is reduced to its
 * verb and the kind, such as `CREATE ROLE`. If no known kind follows, as in `DO`, only the verb is left.
 */
const objects = new Set(
  [
    'role',
    'user',
    'database',
    'schema',
    'table',
    'index',
    'view',
    'materialized',
    'sequence',
    'function',
    'procedure',
  ].concat([
    'extension',
    'publication',
    'subscription',
    'type',
    'domain',
    'trigger',
    'policy',
    'server',
    'system',
    'default',
    'event',
  ]),
);

function maskStatement(statement: string): string {
  const [, verb = '', object = ''] = /^[\s(]*([a-z]+)(?:\s+(?:or\s+replace\s+)?([a-z]+))?/i.exec(statement) ?? [];
  if (plainVerbs.has(verb.toLowerCase())) return statement.trim();
  return objects.has(object.toLowerCase()) ? `${verb} ${object}` : verb;
}

/**
 * The shape of one or more statements, for a trace. It has no strings, because they are customers' data and sometimes
 * passwords.
 */
export function maskSql(text: string): string {
  const separator = '\u0000';
  const masked = text.replaceAll(separator, ' ').replace(pieces, (piece) => {
    if (piece === ';') return separator;
    if (piece.startsWith('"')) return piece;
    return piece.startsWith('--') || piece.startsWith('/*') ? ' ' : '?';
  });
  const statements = masked.split(separator).map(maskStatement);
  return statements
    .filter((statement) => statement !== '')
    .join('; ')
    .slice(0, shownMax);
}
