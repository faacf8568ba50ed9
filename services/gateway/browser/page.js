// Every page of the documentation loads this script. It shows the page light or dark, as its reader chose, and searches
// the guides. On /docs it also shows the Reference.

const isDark = () => {
  const chosen = localStorage.getItem('colorMode');
  return chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
};

/**
 * Shows the page light or dark. Scalar reads the same choice from `localStorage`, and expects its class on the body.
 */
function wear() {
  for (const element of [document.documentElement, document.body]) {
    element?.classList.toggle('dark-mode', isDark());
    element?.classList.toggle('light-mode', !isDark());
  }
}
wear();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', wear);

// The library zod, which the Reference contains, tries to compile code, and works without if that fails. The browser
// would report each try as a violation of the page's policy. So the constructor throws first.
window.Function = new Proxy(Function, {
  construct() {
    throw new EvalError('This page compiles no code.');
  },
});

/** The list of guides in Markdown, for the introduction of the Reference, where its search finds them. */
function describeGuides() {
  const links = document.createElement('template');
  links.innerHTML = document.querySelector('#reference noscript')?.textContent ?? '';
  const guides = [...links.content.querySelectorAll('a[href^="/docs/guides/"]')];
  return guides.map((guide) => `- [${guide.textContent}](${guide.getAttribute('href')}): ${guide.title}`).join('\n');
}

/**
 * Repairs of faults of Scalar 1.46 that exclude people who cannot see the page or use a pointer. axe reports each of
 * them. An element is repaired when it appears.
 */
const mends = {
  'button[aria-selected]:not([role])': (button) => button.removeAttribute('aria-selected'),
  'button[role="search"], button[role="none"]': (button) => button.removeAttribute('role'),
  'button.client-libraries__select:not([aria-label])': (button) => button.setAttribute('aria-label', 'More'),
  'button.show-more[aria-label]': (button) => button.removeAttribute('aria-label'),
  '[role="tablist"] button:not([role])': (button) => button.setAttribute('role', 'tab'),
  'ul.endpoints:not([tabindex]), .cm-scroller[tabindex="-1"]': (region) => region.setAttribute('tabindex', '0'),
  'button[class*="copy"]:not([aria-label])': (button) => button.setAttribute('aria-label', 'Copy'),
  'button[class*="copy"][aria-controls]': (button) => button.removeAttribute('aria-controls'),
  'input[type="checkbox"]:not([aria-label])': (box) => box.setAttribute('aria-label', 'Send this one'),
  '.cm-content:not([aria-label])': (field) => field.setAttribute('aria-label', 'Value'),
};

function mend() {
  for (const [selector, repair] of Object.entries(mends))
    for (const element of document.querySelectorAll(selector)) repair(element);
}

function keepMended() {
  let isDue = false;
  const observer = new MutationObserver(() => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      mend();
    });
  });
  const attributeFilter = ['role', 'aria-selected', 'aria-label', 'aria-controls', 'tabindex'];
  observer.observe(document.body, { subtree: true, childList: true, attributeFilter });
}

/**
 * Makes `/docs#restoreSiteBackup` open that operation. Scalar itself addresses an operation by its tag, method and
 * path.
 */
function nameOperation({ paths }) {
  const wanted = decodeURIComponent(location.hash.slice(1));
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId, tags }] of Object.entries(methods)) {
      const tag = tags[0].toLowerCase().replaceAll(' ', '-');
      if (operationId === wanted) history.replaceState(null, '', `#tag/${tag}/${method.toUpperCase()}${path}`);
    }
  }
}

async function showReference(parent) {
  const contract = await (await fetch('/openapi.json')).json();
  nameOperation(contract);
  const tryIt =
    'To try a call here, paste a sandbox key (`dd_test_…`) under Authentication: it touches nothing real. It stays in this page.';
  contract.info.description = `${tryIt}\n\n${contract.info.description}\n\n## Guides\n\n${describeGuides()}`;
  parent.replaceChildren();
  keepMended();
  window.Scalar.createApiReference(parent, {
    content: contract,
    layout: 'modern',
    theme: 'default',
    withDefaultFonts: false,
    hideDarkModeToggle: true,
    hideClientButton: true,
    hideModels: true,
    documentDownloadType: 'none',
    showDeveloperTools: 'never',
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    persistAuth: false,
    authentication: { preferredSecurityScheme: 'apiKey' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  });
}

/** Returns the parts of the guides that have all typed words. Parts with all of them in their heading come first. */
function findParts(parts, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const found = parts.filter(({ guide, heading, text }) => has(`${guide} ${heading} ${text}`));
  const rank = ({ guide, heading }) => (has(heading) ? 0 : has(`${guide} ${heading}`) ? 1 : 2);
  return found
    .sort((left, right) => rank(left) - rank(right))
    .map((part) => ({ ...part, excerpt: excerptOf(part.text, words) }));
}

/** Returns the text around the first of the words, in pieces. A piece with `isMarked` is one of the words. */
function excerptOf(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const from = places.length === 0 ? 0 : Math.max(0, text.lastIndexOf(' ', Math.min(...places) - 40));
  const shown = text.slice(from, from + 150).trim();
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pieces = shown.split(new RegExp(`(${escaped.join('|')})`, 'i'));
  return pieces.map((piece, index) => ({ piece, isMarked: index % 2 === 1 }));
}

function showFound(list, found) {
  const items = found.map(({ href, guide, heading, excerpt }) => {
    const link = Object.assign(document.createElement('a'), { href });
    const title = Object.assign(document.createElement('b'), {
      textContent: heading === guide ? guide : `${guide}: ${heading}`,
    });
    const around = document.createElement('span');
    for (const { piece, isMarked } of excerpt)
      around.append(isMarked ? Object.assign(document.createElement('mark'), { textContent: piece }) : piece);
    link.append(title, around);
    const item = document.createElement('li');
    item.append(link);
    return item;
  });
  list.replaceChildren(...items);
}

/** The most parts that are shown at once. */
const mostFound = 8;

/** Makes the search in the bar work. Its texts are loaded when its field gets the focus. */
function openSearch(box) {
  const [field, panel] = [box.querySelector('input'), box.querySelector('#dd-found')];
  const [status, list] = [panel.querySelector('p'), panel.querySelector('ul')];
  let parts;
  const load = async () => {
    parts ??= fetch('/docs/search.json').then((answer) => answer.json());
    return parts;
  };
  const close = () => {
    panel.hidden = true;
  };
  const look = async () => {
    const typed = field.value;
    try {
      const found = findParts(await load(), typed);
      // The reader has typed more meanwhile, and a later call shows the result for that.
      if (typed !== field.value) return;
      const more = found.length > mostFound ? `, the first ${mostFound} of them here` : '';
      status.textContent = found.length === 0 ? 'Nothing has all of these words.' : `${found.length} found${more}`;
      showFound(list, found.slice(0, mostFound));
    } catch {
      parts = undefined;
      status.textContent = 'The words of the guides could not be loaded. Type again in a moment.';
    }
    panel.hidden = typed.trim() === '';
  };
  field.addEventListener('focus', () => load().catch(() => (parts = undefined)));
  field.addEventListener('input', look);
  box.addEventListener('keydown', (event) => {
    const places = [field, ...list.querySelectorAll('a')];
    const at = places.indexOf(document.activeElement);
    if (event.key === 'Escape') {
      close();
      field.focus();
    } else if (event.key === 'Enter' && at === 0) places[1]?.click();
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      places.at(event.key === 'ArrowDown' ? Math.min(at + 1, places.length - 1) : Math.max(at - 1, 0))?.focus();
      event.preventDefault();
    }
  });
  document.addEventListener('click', (event) => {
    if (!box.contains(event.target) || event.target.closest('#dd-found a') !== null) close();
  });
  box.hidden = false;
}

document.addEventListener('DOMContentLoaded', () => {
  wear();
  openSearch(document.querySelector('.dd-search'));
  document.querySelector('.dd-mode')?.addEventListener('click', () => {
    localStorage.setItem('colorMode', isDark() ? 'light' : 'dark');
    wear();
  });
  const parent = document.querySelector('#reference');
  if (parent === null) return;
  showReference(parent).catch((error) => {
    parent.textContent = `The Reference could not be shown. Load the page again. ${error.message}`;
  });
});
