/** The content of a hosting package as text: pages, tables by database, and messages by mailbox. */
export interface VendorContent {
  web: Readonly<Record<string, string>>;
  databases: Readonly<Record<string, Readonly<Record<string, string>>>>;
  mailboxes: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const page = (title: string, text: string): string =>
  `<!doctype html>\n<meta charset="utf-8">\n<title>${title}</title>\n<h1>${title}</h1>\n<p>${text}</p>\n`;

/** The content at the time of the vendor's restore points. */
export const vendorContentBefore: VendorContent = {
  web: {
    'index.html': page('Lighthouse Tea', 'Open from eight.'),
    'teas.html': page('Our teas', 'Assam, Sencha, Rooibos.'),
  },
  databases: { tea_shop: { 'orders.json': JSON.stringify([{ id: 1, tea: 'Assam', cups: 2 }]) } },
  mailboxes: {
    'hello@tea.demo.test': {
      'cur/1:2,S': 'From: guest@example.com\nSubject: A table for four\n\nOn Friday at five?\n',
    },
  },
};

/** The present content. Each part differs from the restore point, so that a restore is visible. */
export const vendorContentNow: VendorContent = {
  web: { 'index.html': page('Lighthouse Tea', 'Closed by mistake.') },
  databases: { tea_shop: { 'orders.json': JSON.stringify([]) } },
  mailboxes: { 'hello@tea.demo.test': {} },
};
