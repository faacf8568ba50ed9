const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
};
const names: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export interface Xml {
  readonly xml: string;
}

/** Builds an element. Text is escaped, and elements are inserted unchanged. */
export const element = (name: string, content: string | number | boolean | readonly Xml[]): Xml => {
  const inner = typeof content === 'object' ? content.map(({ xml }) => xml).join('') : escapeText(String(content));
  return { xml: `<${name}>${inner}</${name}>` };
};

const escapeText = (text: string): string => text.replace(/[&<>"\r]/g, (letter) => escapes[letter] ?? letter);

/** Builds a document with the namespace that clients expect from S3. */
export const xmlDocument = (root: Xml): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${root.xml.replace(/^<(\w+)>/, (_all, name: string) =>
    name === 'Error' ? '<Error>' : `<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
  )}`;

const unescapeText = (text: string): string =>
  text.replace(
    /&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi,
    (all, decimal: string | undefined, hex: string | undefined, name: string | undefined) => {
      if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
      return names[name ?? ''] ?? all;
    },
  );

/**
 * Returns the inner XML of every element with this name, in order. S3's requests do not nest elements of the same name.
 */
export const elementsOf = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, 'g'))].map((match) => match[1] ?? '');

/** Returns the text of the first element with this name. */
export function textOf(xml: string, name: string): string | undefined {
  const [inside] = elementsOf(xml, name);
  return inside === undefined ? undefined : unescapeText(inside.trim());
}
