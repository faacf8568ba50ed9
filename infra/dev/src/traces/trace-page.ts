import type { Row, Trace } from './trace-store';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? '');

const style = `
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; --line: #8883; --quiet: #777; --bad: #d33; }
body { margin: 0 auto; max-width: 1200px; padding: 1rem; }
a { color: inherit; }
h1 { font-size: 1.2rem; }
form { margin: 1rem 0; }
input { width: 26rem; max-width: 70%; padding: .3rem .5rem; font: inherit; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: left; }
td.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.quiet { color: var(--quiet); }
.bad { color: var(--bad); }
.row summary { display: grid; grid-template-columns: minmax(0, 45%) 1fr 6rem; gap: .5rem; cursor: pointer; list-style: none; border-bottom: 1px solid var(--line); }
.row summary:hover { background: #8881; }
.row .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .lane { position: relative; }
.row .bar { position: absolute; top: .35rem; height: .7rem; min-width: 2px; border-radius: 2px; }
.row .time { font-variant-numeric: tabular-nums; text-align: right; }
.row dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 1rem; font-size: .9em; }
.row dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
`;

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)} · Drydock</title>` +
  `<style>${style}</style><body>${body}</body></html>\n`;

const search = (text: string): string =>
  `<form action="/"><input name="q" value="${escaped(text)}" placeholder="id of a workflow, request, trace, organisation, site" aria-label="Find traces"> <button>Find</button></form>`;

const timeOf = (milliseconds: number): string => {
  if (milliseconds >= 10_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  return milliseconds >= 100 ? `${Math.round(milliseconds)} ms` : `${milliseconds.toFixed(1)} ms`;
};

const clockOf = (sinceMs: number): string => new Date(sinceMs).toISOString().slice(11, 23);

/** Renders the traces as a table in the given order, with a search field. */
export function listPage(traces: readonly Trace[], text: string): string {
  const rows = traces.map(
    ({ traceId, first, startMs, durationMs, hasFailed, services, rows: spans }) =>
      `<tr><td class="quiet">${clockOf(startMs)}<td><a href="/traces/${traceId}">${escaped(first.name)}</a>${hasFailed ? ' <span class="bad">error</span>' : ''}` +
      `<td class="quiet">${escaped(services.join(', '))}<td class="number">${spans.length}<td class="number">${timeOf(durationMs)}</tr>`,
  );
  const found =
    rows.length > 0
      ? `<table><tr><th>Began (UTC)<th>Trace<th>Processes<th>Spans<th>Took</tr>${rows.join('')}</table>`
      : `<p>${text === '' ? 'No trace yet. Call the API, and load this page again.' : 'No trace holds this id. The last 300 are kept.'}`;
  return page('Traces', `<h1>Traces</h1>${search(text)}${found}`);
}

/** Renders a trace as a waterfall. A click on a row shows the attributes of its span. */
export function tracePage(trace: Trace): string {
  const rows = trace.rows.map((row) => rowOf(row, trace));
  const about = `${trace.rows.length} spans in ${trace.services.length} processes, ${timeOf(trace.durationMs)} from ${new Date(trace.startMs).toISOString()}`;
  const head = `<p><a href="/">All traces</a><h1>${escaped(trace.first.name)}</h1><p class="quiet">${about}<br>${trace.traceId}</p>`;
  return page(trace.first.name, head + rows.join(''));
}

export const missingPage = (): string =>
  page('Not found', '<h1>No such trace</h1><p>It is not among the last 300. <a href="/">All traces</a>');

function rowOf(row: Row, { startMs, durationMs }: Trace): string {
  const percent = (milliseconds: number): string =>
    `${((100 * milliseconds) / Math.max(durationMs, 0.001)).toFixed(2)}%`;
  const bar = `left:${percent(row.startMs - startMs)};width:${percent(row.durationMs)};background:${row.hasFailed ? 'var(--bad)' : colourOf(row.service)}`;
  const more = Object.entries({ ...row.attributes, 'process.pid': row.pid, 'span.id': row.spanId });
  const name = `<b>${escaped(row.service)}</b> ${escaped(row.name)}${row.isOrphan ? ' <span class="quiet">(its parent has not ended)</span>' : ''}`;
  return (
    `<details class="row"><summary><span class="name${row.hasFailed ? ' bad' : ''}" style="padding-left:${row.depth}rem">${name}</span>` +
    `<span class="lane"><span class="bar" style="${bar}"></span></span><span class="time">${timeOf(row.durationMs)}</span></summary>` +
    `<dl>${more.map(([key, value]) => `<dt class="quiet">${escaped(key)}<dd>${escaped(value)}`).join('')}</dl></details>`
  );
}

/** Returns a colour that depends only on the process's name. */
function colourOf(service: string): string {
  let hash = 0;
  for (const character of service) hash = (hash * 31 + character.charCodeAt(0)) % 360;
  return `hsl(${hash} 60% 50%)`;
}
