import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { endpoints } from '@drydock/contracts/endpoints';
import { buildOpenApi } from '@drydock/contracts/platform/openapi';
import { problemCodes, problems } from '@drydock/contracts/platform/problems';
import { guides, readGuideParts } from './guides';
import { escapeHtml, htmlPage, jsonPage, keptOnce, type Page, wantsJson } from './page';

export const openApiPage = keptOnce(() => jsonPage(buildOpenApi(endpoints)));

/**
 * The content policy of the Reference. The Reference may call this API and load this gateway's files, and nothing else.
 * Scalar writes its style into the page, which needs 'unsafe-inline' for styles. Scripts must be files of this gateway.
 */
const referencePolicy = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** The Reference: the OpenAPI document for people, shown by Scalar. Its settings are in browser/page.js. */
export const referencePage = keptOnce(() => {
  const told = guides.map(
    ({ name, title, about }) => `<li><a href="/docs/guides/${name}" title="${escapeHtml(about)}">${title}</a></li>`,
  );
  const body = `<div id="reference"><noscript class="dd-page"><article><h1>Drydock API</h1>\
<p>The Reference needs JavaScript. What it shows is in
<a href="/openapi.json">openapi.json</a>, and these need none:</p>\
<ul><li><a href="/problems">Problems</a></li>${told.join('')}</ul></article></noscript></div>`;
  return htmlPage({
    title: 'API reference',
    part: 'reference',
    head: '<script src="/docs/reference.js" defer></script>',
    body,
    contentPolicy: referencePolicy,
  });
});

/**
 * The texts that the search in the bar covers: those of the guides and of the problems. The Reference searches its
 * operations by itself.
 */
const searchPage = keptOnce(async () => {
  const told = problemCodes.map((code) => {
    const { title, advice } = problems[code];
    return { href: `/problems/${code}`, guide: 'Problems', heading: code, text: `${title} ${advice}` };
  });
  return jsonPage([...(await readGuideParts()), ...told]);
});

const ownFiles = path.resolve(__dirname, '../../browser');
const textOf = (file: string, contentType: Page['contentType']): (() => Promise<Page>) =>
  keptOnce(async () => ({ status: 200, contentType, text: await readFile(file) }));

export const pageFiles: Readonly<Record<string, () => Promise<Page>>> = {
  '/docs/page.css': textOf(path.join(ownFiles, 'page.css'), 'text/css; charset=utf-8'),
  '/docs/page.js': textOf(path.join(ownFiles, 'page.js'), 'text/javascript; charset=utf-8'),
  '/docs/search.json': searchPage,
  '/docs/drydock.svg': textOf(path.join(ownFiles, 'drydock.svg'), 'image/svg+xml'),
  '/docs/reference.js': textOf(
    require.resolve('@scalar/api-reference/browser/standalone.js'),
    'text/javascript; charset=utf-8',
  ),
};

/** The page at the gateway's root. It sends people to the Reference and gives programs a list of paths. */
export function frontPage(accept: string | undefined): Page {
  if (wantsJson(accept)) return jsonPage({ documentation: '/docs', openapi: '/openapi.json', problems: '/problems' });
  return {
    status: 302,
    location: '/docs',
    contentType: 'text/html; charset=utf-8',
    text: '<a href="/docs">Drydock API</a>\n',
  };
}
