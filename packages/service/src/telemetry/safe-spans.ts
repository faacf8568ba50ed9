import { type Attributes, type AttributeValue, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { tracing } from '@opentelemetry/sdk-node';
import { maskSql } from './mask-sql';
import { redact } from './redact';

/**
 * The only exit of this process for spans: whatever an instrumentation recorded, a statement leaves only as its shape,
 * a URL without query and credentials, and no text with a secret in it.
 */
export function createSafeExporter(exporter: tracing.SpanExporter): tracing.SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(safeSpan), done),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Whether a look-up found nothing: an ordinary answer, although instrumentations call every 4xx an error. */
const isNothingFound = ({ kind, attributes }: tracing.ReadableSpan): boolean =>
  kind === SpanKind.CLIENT &&
  attributes['http.response.status_code'] === 404 &&
  (attributes['http.request.method'] === 'GET' || attributes['http.request.method'] === 'HEAD');

/** Spans have getters and a class of their own, so this view shows changed members and everything else as it is. */
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
  const safe = {
    name: redact(span.name),
    attributes: safeAttributes(span.attributes),
    events: span.events.map((event) => ({
      ...event,
      name: redact(event.name),
      attributes: safeAttributes(event.attributes ?? {}),
    })),
    links: span.links.map((link) => ({ ...link, attributes: safeAttributes(link.attributes ?? {}) })),
    status: message === undefined ? span.status : { ...span.status, message: redact(message) },
  };
  const values = Object.entries(safe).map(([name, value]) => [name, { value, enumerable: true }] as const);
  return Object.create(span, Object.fromEntries(values));
}

const statementNames: ReadonlySet<string> = new Set(['db.query.text', 'db.statement']);
const urlNames: ReadonlySet<string> = new Set(['url.full', 'http.url', 'http.target', 'url.path']);
/** Never shown, because clients may put anything in them. */
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
  if (statementNames.has(name)) return redact(maskSql(text));
  return redact(urlNames.has(name) ? text.replace(/[?#][\s\S]*$/, '') : text);
}
