import type { SiteFilter, SiteStatus } from '@drydock/contracts/hosting/sites';
import { type Metadata, type Mode, metadataSchema } from '@drydock/contracts/platform/values';
import { carrying, createdBetween, holding, lockRow, oneOf } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { Prisma, type Site as SiteRow } from '../generated/prisma/client';
import { databaseOf, statusesBefore } from './site.rules';
import type { Owner, Site } from './site.types';

/** The id that the vendor gave the package of the site; null without a package. */
export async function findVendorPackageId(tx: Reader, site: Owner & { id: string }): Promise<string | null> {
  const row = await tx.vendorPackage.findFirst({
    where: { siteId: site.id, orgId: site.orgId, mode: site.mode },
    select: { packageId: true },
  });
  return row?.packageId ?? null;
}

export async function recordVendorPackage(tx: Tx, site: Owner & { siteId: string }, packageId: string): Promise<void> {
  const { siteId, orgId, mode } = site;
  await tx.vendorPackage.upsert({
    where: { siteId },
    create: { siteId, orgId, mode, packageId },
    update: { packageId },
  });
}

export async function forgetVendorPackage(tx: Tx, siteId: string): Promise<void> {
  await tx.vendorPackage.deleteMany({ where: { siteId } });
}

const toSite = ({
  holdsDomain: _holdsDomain,
  domainProvenAt: _provenAt,
  backupSequence: _sequence,
  serveCheckAt: _serveCheckAt,
  nextBackupAt: _nextBackupAt,
  storageState: _storageState,
  ...row
}: SiteRow): Site => ({ ...row, database: databaseOf(row), metadata: metadataSchema.parse(row.metadata) });

type NewSite = Omit<Site, 'createdAt' | 'url'> & { domainProvenAt: Date | null };

/**
 * Resolves with null if another site in this mode holds the domain. A site of another organisation counts only if both
 * sites have proven the domain.
 */
export async function insertSite(tx: Tx, site: NewSite): Promise<Site | null> {
  // With ON CONFLICT DO NOTHING (`skipDuplicates`) a taken domain gives no row, instead of an error of the database.
  const inserted = await tx.site.createManyAndReturn({ data: [site], skipDuplicates: true });
  return inserted[0] === undefined ? null : toSite(inserted[0]);
}

/** The site with this id. Null if the organisation has no such site in this mode. */
export async function findSite(tx: Reader, owner: Owner, siteId: string): Promise<Site | null> {
  const row = await tx.site.findFirst({ where: { id: siteId, orgId: owner.orgId, mode: owner.mode } });
  return row === null ? null : toSite(row);
}

/**
 * Works like {@link findSite}, and locks the row until the transaction ends, so that a decision about the site still
 * holds when it is written.
 */
export async function lockSite(tx: Tx, owner: Owner, siteId: string): Promise<Site | null> {
  const row = await lockRow<SiteRow>(tx, { name: 'sites', fields: Prisma.SiteScalarFieldEnum }, owner, siteId);
  return row === null ? null : toSite(row);
}

/** Changes the name and the metadata. The caller has locked the row. */
export async function describeSite(
  tx: Tx,
  siteId: string,
  change: { name: string; metadata: Metadata },
): Promise<Site> {
  return toSite(await tx.site.update({ where: { id: siteId }, data: change }));
}

/** Lists sites, newest first. With `after` only those older than the site `after`. */
export async function listSites(
  tx: Reader,
  owner: Owner,
  page: { after: string | null; take: number },
  { status, storage, text, metadata, ...created }: SiteFilter,
): Promise<Site[]> {
  const behind = page.after === null ? {} : { id: { lt: page.after } };
  const narrowed = {
    ...oneOf('status', status),
    ...oneOf('storageState', storage),
    ...holding(text, 'name', 'primaryDomain'),
    ...carrying(metadata),
    ...createdBetween(created),
  };
  const rows = await tx.site.findMany({
    where: { orgId: owner.orgId, mode: owner.mode, ...behind, ...narrowed },
    orderBy: { id: 'desc' },
    take: page.take,
  });
  return rows.map(toSite);
}

/** Throws if the site's status cannot change to `to`. */
export async function changeStatus(tx: Tx, siteId: string, to: SiteStatus): Promise<void> {
  const { count } = await tx.site.updateMany({
    where: { id: siteId, status: { in: statusesBefore(to) } },
    data: { status: to },
  });
  if (count !== 1) throw new Error(`site ${siteId} cannot become ${to}`);
}

export async function recordUrl(tx: Tx, siteId: string, url: string): Promise<void> {
  await tx.site.update({ where: { id: siteId }, data: { url } });
}

/** Frees the domain of a site that will never be served. */
export async function releaseDomain(tx: Tx, siteId: string): Promise<void> {
  await tx.site.update({ where: { id: siteId }, data: { holdsDomain: false } });
}

/**
 * The next sequence number for a backup or a copy of the site. It is greater than every earlier one, even those of
 * failed backups and copies.
 */
export async function nextBackupSequence(tx: Tx, siteId: string): Promise<bigint> {
  const { backupSequence } = await tx.site.update({
    where: { id: siteId },
    data: { backupSequence: { increment: 1 } },
    select: { backupSequence: true },
  });
  return backupSequence;
}

/**
 * The time at which the organisation proved that it controls the domain of the site. Null if it only claims the domain.
 */
export async function readProvenAt(tx: Reader, siteId: string): Promise<Date | null> {
  const { domainProvenAt } = await tx.site.findUniqueOrThrow({
    where: { id: siteId },
    select: { domainProvenAt: true },
  });
  return domainProvenAt;
}

/** The site, of any organisation, that has proven the domain. Null if no site has. */
export const findProvenHolder = (
  tx: Reader,
  mode: Mode,
  domain: string,
): Promise<{ id: string; orgId: string } | null> =>
  tx.site.findFirst({
    where: { mode, primaryDomain: domain, holdsDomain: true, domainProvenAt: { not: null } },
    select: { id: true, orgId: true },
  });

/**
 * A domain that passes from one site to another. A lock on the domain makes changes of the same domain wait for each
 * other.
 */
interface Handover {
  mode: Mode;
  domain: string;
  /**
   * The site that loses the domain, because the domain no longer shows the proof of that site's organisation. Null if
   * no site loses it.
   */
  formerSiteId: string | null;
}

/**
 * Locks the domain until the transaction ends, and takes it from its former site. Another site can then have the domain
 * in the same transaction.
 */
export async function freeDomain(tx: Tx, { mode, domain, formerSiteId }: Handover): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`${mode} ${domain}`}, 0))`;
  if (formerSiteId !== null)
    await tx.site.updateMany({ where: { id: formerSiteId, primaryDomain: domain }, data: { domainProvenAt: null } });
}

/** Gives the domain to the site. False if a third site, neither this one nor the former one, has proven the domain. */
export async function takeDomain(
  tx: Tx,
  { siteId, provenAt, ...handover }: Handover & { siteId: string; provenAt: Date },
): Promise<boolean> {
  await freeDomain(tx, handover);
  const holder = await findProvenHolder(tx, handover.mode, handover.domain);
  if (holder !== null && holder.id !== siteId) return false;
  await tx.site.update({ where: { id: siteId }, data: { domainProvenAt: provenAt } });
  return true;
}

/** The domains that sites hold now, for `isHeld`. */
export interface HeldDomains {
  /** Domains of sites of the deleted site's organisation. */
  own: ReadonlySet<string>;
  /** Domains that some organisation has proven. */
  proven: ReadonlySet<string>;
}

export async function listHeldDomains(
  tx: Reader,
  { orgId, mode }: Owner,
  domains: readonly string[],
): Promise<HeldDomains> {
  const rows = await tx.site.findMany({
    where: {
      mode,
      holdsDomain: true,
      primaryDomain: { in: [...domains] },
      OR: [{ orgId }, { domainProvenAt: { not: null } }],
    },
    select: { primaryDomain: true, orgId: true, domainProvenAt: true },
  });
  return {
    own: new Set(rows.filter((row) => row.orgId === orgId).map(({ primaryDomain }) => primaryDomain)),
    proven: new Set(rows.filter((row) => row.domainProvenAt !== null).map(({ primaryDomain }) => primaryDomain)),
  };
}

/**
 * Whether a deleted site cannot have its domain back. The proof of another organisation counts only against a site that
 * had proven the domain too. An organisation that merely claimed a domain must not learn that the domain's owner is a
 * customer of Drydock.
 */
export const isHeld = (
  { own, proven }: HeldDomains,
  site: { primaryDomain: string; domainProvenAt: Date | null },
): boolean => own.has(site.primaryDomain) || (site.domainProvenAt !== null && proven.has(site.primaryDomain));
