import { type EndpointDefinition, problemCodesOf } from '@drydock/contracts/platform/endpoint';
import { endpoints } from '@drydock/contracts/platform/endpoints';
import { schemaOf } from '@drydock/contracts/platform/json-schema';
import { buildOpenApi } from '@drydock/contracts/platform/openapi';
import { problems } from '@drydock/contracts/platform/problems';
import { escapeHtml, htmlPage, jsonPage, keepPage, type Page } from './page';

let openApi: Page | undefined;
let docs: Page | undefined;

/** Made at the first request for it, since most gateways are never asked. */
export function openApiPage(): Page {
  openApi ??= keepPage(jsonPage(buildOpenApi(endpoints)));
  return openApi;
}

/** The same document for people: one page, without scripts, so that it works behind any firewall and content policy. */
export function docsPage(): Page {
  docs ??= keepPage(htmlPage('API', renderDocs()));
  return docs;
}

function renderDocs(): string {
  const tags = [...new Set(endpoints.flatMap((endpoint) => endpoint.tags))];
  const sections = tags.map((tag) => {
    const members = endpoints.filter((endpoint) => endpoint.tags[0] === tag);
    return `<h2>${escapeHtml(tag)}</h2>${members.map(renderEndpoint).join('')}`;
  });
  return `<h1>Drydock API</h1><p>Send your key as <code>Authorization: Bearer dd_…</code>. Errors are <a href="/problems">problem+json</a> with a stable <code>code</code>.
The machine's version is <a href="/openapi.json">openapi.json</a>.</p>${sections.join('')}`;
}

function renderEndpoint(endpoint: EndpointDefinition): string {
  const { id, method, path, summary, permissions, quota, query, body, response, idempotency } = endpoint;
  const codes = problemCodesOf(endpoint).map((code) => `<a href="/problems/${code}"><code>${code}</code></a> ${problems[code].status}`);
  const facts: Array<[string, string]> = [
    ['Permissions', permissions.length === 0 ? 'any key' : permissions.map((name) => `<code>${name}</code>`).join(' and ')],
    ['Quota', quota],
    ...(idempotency === 'accepted'
      ? [['Idempotency-Key', 'accepted, 1 to 255 visible ASCII characters, kept 24 h'] as [string, string]]
      : []),
    ['Answers', `${response.status}, or ${codes.join(', ')}`],
  ];
  return `<details id="${id}"><summary><span class="method">${method}</span><code>${escapeHtml(path)}</code> ${escapeHtml(summary)}</summary>
<table>${facts.map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`).join('')}</table>
${renderSchema('Query', query, 'input')}${renderSchema('Body', body, 'input')}${renderSchema('Answer', response.schema, 'output')}</details>`;
}

const renderSchema = (title: string, schema: Parameters<typeof schemaOf>[0] | undefined, io: 'input' | 'output'): string =>
  schema === undefined ? '' : `<h4>${title}</h4><pre>${escapeHtml(JSON.stringify(schemaOf(schema, io), null, 2))}</pre>`;
