import type { Page } from './page';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

/**
 * The content policy of our pages: their own style, script, pictures and search index. Nothing inline, nothing from
 * elsewhere.
 */
const ownPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

export interface Layout {
  /** Text. */
  title: string;
  /** HTML. */
  body: string;
  /** HTML that belongs into the head. */
  head?: string;
  /** The part of the documentation that the page belongs to. */
  part: 'reference' | 'guides' | 'problems';
  contentPolicy?: string;
}

/** A whole HTML page in the common layout: the bar with the parts of the documentation, light or dark. */
export function htmlPage({ title, body, head = '', part, contentPolicy = ownPolicy }: Layout): Page {
  const link = (to: typeof part, href: string, text: string): string =>
    `<a href="${href}"${to === part ? ' aria-current="true"' : ''}>${text}</a>`;
  const text = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Drydock</title><link rel="icon" type="image/svg+xml" href="/docs/drydock.svg">
<link rel="stylesheet" href="/docs/page.css"><script src="/docs/page.js"></script>${head}</head>
<body><header class="dd-bar"><a class="dd-home" href="/docs" aria-label="Drydock">\
<img src="/docs/drydock.svg" alt="" width="24" height="24"><span>Drydock</span></a>
<nav aria-label="Documentation">${link('reference', '/docs', 'Reference')}\
${link('guides', '/docs/guides', 'Guides')}${link('problems', '/problems', 'Problems')}</nav>
<search class="dd-search" hidden><input type="search" placeholder="Search the guides" \
aria-label="Search the guides" aria-controls="dd-found" autocomplete="off" spellcheck="false">
<div id="dd-found" class="dd-found" hidden><p role="status"></p><ul></ul></div></search>
<button class="dd-mode" type="button" aria-label="Light or dark" title="Light or dark"></button></header>
${body}</body></html>
`;
  return { status: 200, contentType: 'text/html; charset=utf-8', text, contentPolicy };
}

/** A page of prose, beside the list of guides. */
export const prosePage = ({ body, ...layout }: Layout): Page =>
  htmlPage({ ...layout, body: `<main class="dd-page">${body}</main>` });
