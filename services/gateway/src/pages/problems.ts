import { problem } from '@drydock/contracts/platform/problem';
import { type ProblemCode, problemCodes, problems } from '@drydock/contracts/platform/problems';
import { escapeHtml, jsonPage, type Page, prosePage, wantsJson } from './page';

const entryOf = (code: ProblemCode) => {
  const { status, title, advice, transient = false } = problems[code];
  return { type: `/problems/${code}`, code, status, title, advice, transient };
};

export function problemIndexPage(accept: string | undefined): Page {
  const entries = problemCodes.map(entryOf);
  if (wantsJson(accept)) return jsonPage({ data: entries });
  const rows = entries.map(
    ({ type, code, status, title }) =>
      `<tr><td><a href="${type}"><code>${code}</code></a></td><td>${status}</td><td>${escapeHtml(title)}</td></tr>`,
  );
  const body = `<article><h1>Problems</h1>\
<p>Every error is a problem (RFC 9457). Its <code>code</code> is stable: decide by it. \
How to handle them is in the guide
<a href="/docs/guides/errors">Errors</a>.</p>\
<table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th></tr></thead>\
<tbody>${rows.join('')}</tbody></table></article>`;
  return prosePage({ title: 'Problems', part: 'problems', body });
}

/** The page that the `type` of a problem points at. Throws 404 for a code that does not exist. */
export function problemPage(wanted: string, accept: string | undefined): Page {
  const code = problemCodes.find((known) => known === wanted);
  if (code === undefined) throw problem('route_not_found');
  const entry = entryOf(code);
  if (wantsJson(accept)) return jsonPage(entry);
  const again = entry.transient
    ? 'The answer is decided anew each time: the same request can be sent again, ' +
      'after the seconds in Retry-After where there are any.'
    : 'Sending the same request again gives the same answer.';
  const example = JSON.stringify(problem(code).body('0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44'), null, 2);
  const body = `<article><p class="dd-trail"><a href="/problems">Problems</a></p><h1>${escapeHtml(entry.title)}</h1>
<p class="dd-facts"><code>${code}</code><span>Status ${entry.status}</span>\
<span>${entry.transient ? 'Passes' : 'Stays'}</span></p>
<h2>What to do</h2><p>${escapeHtml(entry.advice)}</p><p>${again}</p>\
<h2>How it looks</h2><pre tabindex="0"><code>${escapeHtml(example)}</code></pre></article>`;
  return prosePage({ title: entry.title, part: 'problems', body });
}
