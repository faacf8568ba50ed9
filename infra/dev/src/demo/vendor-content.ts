/** The content of a package at the vendor: pages by path, tables by database, and messages by mailbox, all as text. */
export interface VendorContent {
  web: Readonly<Record<string, string>>;
  databases: Readonly<Record<string, Readonly<Record<string, string>>>>;
  mailboxes: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const page = (title: string, text: string): string =>
  `<!doctype html>\n<meta charset="utf-8">\n<title>${title}</title>\n<h1>${title}</h1>\n<p>${text}</p>\n`;

/** The content at the moment of the vendor's restore points. */
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

/** The content after the restore points. Website, database and mailbox all differ from their restore points. */
export const vendorContentNow: VendorContent = {
  web: { 'index.html': page('Lighthouse Tea', 'Closed by mistake.') },
  databases: { tea_shop: { 'orders.json': JSON.stringify([]) } },
  mailboxes: { 'hello@tea.demo.test': {} },
};
