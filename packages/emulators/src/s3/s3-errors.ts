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

/** An S3 error, which becomes the answer to the call. */
export class S3Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'S3Refusal';
    this.status = status;
    this.code = code;
  }
}

const statuses = {
  AccessDenied: 403,
  SignatureDoesNotMatch: 403,
  InvalidAccessKeyId: 403,
  RequestTimeTooSkewed: 403,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchVersion: 404,
  NoSuchUpload: 404,
  ObjectLockConfigurationNotFoundError: 404,
  NoSuchObjectLockConfiguration: 404,
  MethodNotAllowed: 405,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  InvalidBucketState: 409,
  PreconditionFailed: 412,
  InvalidRange: 416,
  MissingContentLength: 411,
  NotImplemented: 501,
} as const;

type RefusalCode =
  | keyof typeof statuses
  | 'BadDigest'
  | 'EntityTooLarge'
  | 'EntityTooSmall'
  | 'IncompleteBody'
  | 'InvalidArgument'
  | 'InvalidBucketName'
  | 'InvalidPart'
  | 'InvalidPartOrder'
  | 'InvalidRequest'
  | 'KeyTooLongError'
  | 'MalformedXML'
  | 'XAmzContentSHA256Mismatch';

const isListed = (code: string): code is keyof typeof statuses => Object.hasOwn(statuses, code);

export function refuse(code: RefusalCode, message: string): never {
  throw new S3Refusal(isListed(code) ? statuses[code] : 400, code, message);
}

export const errorDocument = (code: string, message: string, resource: string, requestId: string): string =>
  xmlDocument(
    element('Error', [
      element('Code', code),
      element('Message', message),
      element('Resource', resource),
      element('RequestId', requestId),
    ]),
  );
