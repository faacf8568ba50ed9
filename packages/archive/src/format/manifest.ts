import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { refuse } from './archive-error';
import { type ArchiveKey, manifestKeysOf, saltBytes, sealingKey } from './archive-keys';
import { formatBounds } from './archive-limits';
import type { Entry } from './entry';

const text = z.string().min(1).max(200);
const mac = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const manifestRoot = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/),
  /**
   * A `tree` is a directory, which a chain's archives describe together. A `stream` is a list of named contents, which
   * is complete in each archive.
   */
  kind: z.enum(['tree', 'stream']),
  blocks: count,
  entries: count,
  tombstones: count,
  raw_bytes: count,
});

export const manifestSchema = z.strictObject({
  /**
   * Version 2 adds links to anywhere, set-group-id of directories, sparse files and more than 256 levels. Version 3
   * adds sticky directories, and paths and targets over 4,000 bytes. Version 4 adds FIFOs, set-id and sticky bits of
   * files, set-user-id of directories, and links and FIFOs with several names. An archive gets the lowest version from
   * 2 on that has everything it uses, so that readers of that version can read it. Version 1 is only read.
   */
  format_version: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4)]),
  codec: z.literal('zstd'),
  cipher: z.literal('aes-256-ctr+hmac-sha256'),
  archive_id: text,
  site_id: text,
  organisation_id: text,
  sequence: count,
  /** The MAC of the parent's manifest, or null for a full archive. */
  parent_mac: mac.nullable(),
  /** The id of the chain's full archive. In a full archive, this is its own id. */
  base_id: text,
  created_at: z.iso.datetime(),
  entries: count,
  raw_bytes: count,
  segments: count,
  /** Bytes of all objects without the manifest. */
  size_bytes: count,
  /** The roots, in the order of their blocks. */
  roots: z.array(manifestRoot).max(16),
  /** `[size, mac]` of each index block. Each index block lists `[size, mac]` of its segments. */
  blocks: z.array(z.tuple([count.max(2 * formatBounds.blockIndexRawBytes), mac])),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type ManifestRoot = z.infer<typeof manifestRoot>;

/** Counts of one root. A writer makes the root's row of the manifest from them. A reader compares them with the row. */
export class RootTally {
  entries = 0;
  tombstones = 0;
  rawBytes = 0;

  count(entry: Entry): void {
    if (entry.type === 'tombstone') this.tombstones += 1;
    else this.entries += 1;
    this.rawBytes += entry.size;
  }

  row(name: string, kind: 'tree' | 'stream', blocks: number): ManifestRoot {
    return { name, kind, blocks, entries: this.entries, tombstones: this.tombstones, raw_bytes: this.rawBytes };
  }
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Encodes JSON with sorted keys and no white space. So each value has one text, and a MAC over the text is a MAC over
 * the value.
 */
function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(',')}}`;
}

const title = 'drydock-archive/1';
/** The length of the first line: `drydock-archive/1 <salt> <key check>` and a line break. */
const firstLineBytes = title.length + 1 + 2 * saltBytes + 1 + 32 + 1;
/** The length of the MAC with a line break before and after it. */
const lastLineBytes = 1 + 64 + 1;

export interface SealedManifest {
  bytes: Buffer;
  /**
   * Hex HMAC-SHA256. A database stores it to recognise exactly this archive, because an older archive may have the same
   * id.
   */
  mac: string;
  sha256: string;
}

/** Returns a manifest's three lines: title with salt and key check, canonical JSON, and the MAC over both. */
export function sealManifest(key: ArchiveKey, salt: Buffer, manifest: Manifest): SealedManifest {
  const keys = manifestKeysOf(key, salt);
  const firstLine = `${title} ${salt.toString('hex')} ${keys.check.toString('hex')}\n`;
  const signed = Buffer.from(firstLine + canonicalJson(manifest), 'utf8');
  const mac = createHmac('sha256', keys.manifest).update(signed).digest('hex');
  const bytes = Buffer.concat([signed, Buffer.from(`\n${mac}\n`, 'latin1')]);
  if (bytes.length > formatBounds.manifestBytes) refuse('limit_exceeded', 'more blocks than a manifest can list');
  return { bytes, mac, sha256: createHash('sha256').update(bytes).digest('hex') };
}

export interface OpenedManifest {
  manifest: Manifest;
  mac: string;
  salt: Buffer;
  /** The accepted key that sealed the manifest. */
  key: ArchiveKey;
}

/**
 * Verifies and reads a manifest. The JSON is parsed only after its MAC was verified. @throws ArchiveError `truncated`,
 * `tampered`, `wrong_key`, `unsupported_format` or `mismatch`
 */
export function openManifest(accepted: ArchiveKey, bytes: Buffer): OpenedManifest {
  if (bytes.length > formatBounds.manifestBytes) refuse('tampered', 'a manifest larger than any');
  if (bytes.length < firstLineBytes + lastLineBytes) refuse('truncated', 'manifest is shorter than any');
  const [name, saltHex, checkHex] = readFirstLine(bytes);
  if (name !== title)
    refuse(name.startsWith('drydock-archive/') ? 'unsupported_format' : 'tampered', `the format ${name.slice(0, 40)}`);
  const salt = Buffer.from(saltHex, 'hex');
  const key = sealingKey(accepted, salt, Buffer.from(checkHex, 'hex'));
  const keys = manifestKeysOf(key, salt);
  const signed = bytes.subarray(0, bytes.length - lastLineBytes);
  const mac = createHmac('sha256', keys.manifest).update(signed).digest('hex');
  if (!timingSafeEqual(Buffer.from(`\n${mac}\n`, 'latin1'), bytes.subarray(bytes.length - lastLineBytes))) {
    refuse(
      timingSafeEqual(Buffer.from(keys.check.toString('hex')), Buffer.from(checkHex, 'latin1'))
        ? 'tampered'
        : 'wrong_key',
      'MAC of the manifest',
    );
  }
  return { manifest: parseManifest(signed.toString('utf8', firstLineBytes)), mac, salt, key };
}

function readFirstLine(bytes: Buffer): [string, string, string] {
  const line = bytes.toString('latin1', 0, firstLineBytes);
  const parts = /^(\S{17}) ([0-9a-f]{32}) ([0-9a-f]{32})\n$/.exec(line);
  const [, name, salt, check] = parts ?? [];
  if (name === undefined || salt === undefined || check === undefined) refuse('tampered', 'first line of the manifest');
  return [name, salt, check];
}

function parseManifest(json: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    refuse('mismatch', 'manifest is no JSON', error);
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) refuse('mismatch', `manifest: ${describeIssues(parsed.error.issues)}`);
  if (canonicalJson(parsed.data) !== json) refuse('mismatch', 'manifest is not canonical');
  return parsed.data;
}

function describeIssues(issues: readonly { path: readonly PropertyKey[]; message: string }[]): string {
  return issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('; ');
}
