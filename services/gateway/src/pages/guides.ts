import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { problem } from '@drydock/contracts/platform/problem';
import MarkdownIt from 'markdown-it';
import { escapeHtml, keptOnce, type Page, prosePage } from './page';

const folder = path.resolve(__dirname, '../../../../docs/guides');

/** The guides of docs/guides for people who call the API, in reading order. Other guides are for operators. */
export const guides = [
  {
    name: 'authentication',
    title: 'Authentication',
    about: 'Keys, what they may do, and how they are given and taken away',
  },
  {
    name: 'sandbox',
    title: 'The sandbox',
    about: 'A key that touches nothing real, and names that make each outcome happen',
  },
  { name: 'idempotency', title: 'Idempotency', about: 'Send a call again without doing its work twice' },
  { name: 'errors', title: 'Errors', about: 'Problems, which of them pass, and what to do about each' },
  {
    name: 'events',
    title: 'Polling, events and webhooks',
    about: 'Follow long work, read what happened, or have it sent to a URL',
  },
  { name: 'restoring-sites', title: 'Restore a site', about: 'From a backup, whole or only its files' },
  { name: 'backups', title: 'Back a site up', about: 'Take, keep and prove backups' },
  {
    name: 'offsite-copies',
    title: 'Copies in your own storage',
    about: 'Send copies to a bucket of yours, and restore',
  },
  { name: 'vendor-snapshots', title: 'Vendor snapshots', about: 'Restore a site that another hosting company runs' },
  { name: 'applications', title: 'Applications', about: 'Serve a site by a program, and restart it' },
  { name: 'domains', title: 'Domains', about: 'A site under its domain, and www' },
  { name: 'rolling-servers-back', title: 'Roll a server back', about: 'To a snapshot of its provider' },
  { name: 'managed-databases', title: 'Managed databases', about: 'Make, back up, restore and upgrade a database' },
  { name: 'command', title: 'The command', about: 'Drydock from a terminal or a script' },
] as const;

/** HTML in a guide is shown as text, and links that could run code are dropped. Both are markdown-it's defaults. */
const markdown = new MarkdownIt({ html: false, linkify: false });

/**
 * The anchor that GitHub gives a heading. The same anchors are used here, because links in the guides are written for
 * GitHub.
 */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

/** The address on this gateway for a guide's link; undefined for files that only a clone of the project has. */
function targetOf(href: string): string | undefined {
  if (/^(https?:|#|\/)/.test(href)) return href;
  const [file = '', anchor] = href.split('#');
  const guide = guides.find(({ name }) => file === `${name}.md`);
  if (guide !== undefined) return `/docs/guides/${guide.name}${anchor === undefined ? '' : `#${anchor}`}`;
  return { '../errors.md': '/problems', '../openapi.json': '/openapi.json' }[file];
}

/** Comments above a block of commands tell tests how to run it; readers do not need them. */
const withoutTestNotes = (source: string): string => source.replace(/^<!-- .* -->\n/gm, '');

/** The guide as HTML, and its headings of the second level. */
export function renderGuide(source: string): { html: string; sections: { id: string; text: string }[] } {
  const tokens = markdown.parse(withoutTestNotes(source), {});
  const sections: { id: string; text: string }[] = [];
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const text = tokens[index + 1]?.content.replace(/[`*]/g, '') ?? '';
      token.attrSet('id', anchorOf(text));
      if (token.tag === 'h2') sections.push({ id: anchorOf(text), text });
    }
    if (token.type === 'fence' || token.type === 'table_open') token.attrSet('tabindex', '0');
    for (const [at, inline] of (token.children ?? []).entries()) {
      if (inline.type !== 'link_open') continue;
      const target = targetOf(String(inline.attrGet('href')));
      if (target !== undefined) inline.attrSet('href', target);
      // A link to a file that only a clone of the project has becomes plain text, because the gateway does not serve
      // it.
      else
        for (const end of [inline, token.children?.slice(at).find(({ type }) => type === 'link_close')])
          if (end) end.tag = 'span';
      if (target === undefined) inline.attrs = null;
    }
  }
  return { html: markdown.renderer.render(tokens, markdown.options, {}), sections };
}

/** A part of a guide under one heading, for the search. */
export interface GuidePart {
  /** The guide's path with the anchor of the heading. */
  href: string;
  guide: string;
  heading: string;
  /** Every visible word of the part, without markup. */
  text: string;
}

export function partsOfGuide(
  { name, title }: Pick<(typeof guides)[number], 'name' | 'title'>,
  source: string,
): GuidePart[] {
  const parts: GuidePart[] = [];
  let isHeading = false;
  for (const token of markdown.parse(withoutTestNotes(source), {})) {
    if (token.type === 'heading_open') {
      isHeading = true;
      continue;
    }
    const children = token.children ?? [];
    const read =
      token.type === 'inline'
        ? children.map(({ type, content }) => (/break$/.test(type) ? ' ' : content)).join('')
        : token.content;
    if (read.trim() === '') continue;
    const last = parts.at(-1);
    if (isHeading || last === undefined)
      parts.push({ href: `/docs/guides/${name}#${anchorOf(read)}`, guide: title, heading: read, text: '' });
    else last.text = `${last.text} ${read.replace(/\s+/g, ' ').trim()}`.trimStart();
    isHeading = false;
  }
  return parts;
}

export const readGuideParts = async (): Promise<GuidePart[]> =>
  (
    await Promise.all(
      guides.map(async (guide) => partsOfGuide(guide, await readFile(path.join(folder, `${guide.name}.md`), 'utf8'))),
    )
  ).flat();

/** The list of guides as HTML. The entry of the guide `current` is marked. */
const guideList = (current: string): string =>
  guides
    .map(
      ({ name, title }) =>
        `<li><a href="/docs/guides/${name}"${name === current ? ' aria-current="page"' : ''}>${title}</a></li>`,
    )
    .join('');

const makeGuide = ({ name, title }: (typeof guides)[number]) =>
  keptOnce(async () => {
    const { html, sections } = renderGuide(await readFile(path.join(folder, `${name}.md`), 'utf8'));
    const inPage = sections.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`).join('');
    const aside = `<aside><nav aria-label="Guides"><ul>${guideList(name)}</ul></nav></aside>`;
    const contents =
      sections.length < 3 ? '' : `<nav class="dd-contents" aria-label="On this page"><ul>${inPage}</ul></nav>`;
    return prosePage({ title, part: 'guides', body: `${aside}<article>${contents}${html}</article>` });
  });

const pages: ReadonlyMap<string, () => Promise<Page>> = new Map(guides.map((guide) => [guide.name, makeGuide(guide)]));

/** The page of a guide. Throws 404 if there is no guide of that name. */
export async function guidePage(name: string): Promise<Page> {
  const make = pages.get(name);
  if (make === undefined) throw problem('route_not_found');
  return make();
}

export const guideIndexPage = keptOnce(() => {
  const entries = guides.map(
    ({ name, title, about }) => `<li><a href="/docs/guides/${name}"><b>${title}</b><span>${about}</span></a></li>`,
  );
  const body = `<article><h1>Guides</h1><p>\
How the parts that every call has in common work. What each call takes and answers is in the
<a href="/docs">reference</a>.</p><ul class="dd-cards">${entries.join('')}</ul></article>`;
  return prosePage({ title: 'Guides', part: 'guides', body });
});
