import { problem } from '@drydock/contracts/platform/problem';
import { type ProblemCode, problemCodes, problems } from '@drydock/contracts/platform/problems';
import { escapeHtml, htmlPage, jsonPage, type Page, wantsJson } from './page';

const entryOf = (code: ProblemCode) => {
  const { status, title, advice, transient = false } = problems[code];
  return { type: `/problems/${code}`, code, status, title, advice, transient };
};

/** Every code there is. */
export function problemIndexPage(accept: string | undefined): Page {
  const entries = problemCodes.map(entryOf);
  if (wantsJson(accept)) return jsonPage({ data: entries });
  const rows = entries.map(
    ({ type, code, status, title }) =>
      `<tr><td><a href="${type}"><code>${code}</code></a></td><td>${status}</td><td>${escapeHtml(title)}</td></tr>`,
  );
  return htmlPage('Problems', `<h1>Problems</h1><table><tr><th>Code</th><th>Status</th><th>Meaning</th></tr>${rows.join('')}</table>`);
}

/** What the `type` of a problem points at. Throws 404 for a code that does not exist. */
export function problemPage(wanted: string, accept: string | undefined): Page {
  const code = problemCodes.find((known) => known === wanted);
  if (code === undefined) throw problem('route_not_found');
  const entry = entryOf(code);
  if (wantsJson(accept)) return jsonPage(entry);
  const again = entry.transient
    ? 'The answer is decided anew each time: the same request can be sent again, after the seconds in Retry-After where there are any.'
    : 'Sending the same request again gives the same answer.';
  const example = JSON.stringify(problem(code).body('0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44'), null, 2);
  return htmlPage(
    entry.title,
    `<h1>${escapeHtml(entry.title)}</h1><p><code>${code}</code>, status ${entry.status}</p><h2>What to do</h2><p>${escapeHtml(entry.advice)}</p><p>${again}</p>` +
      `<h2>What it looks like</h2><pre>${escapeHtml(example)}</pre>`,
  );
}
