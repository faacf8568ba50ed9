import type { Mode } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../context/database.store';
import type { Owner } from '../sites/site.types';

/** The time since which the site's organisation is known to control its domain; null: it has only claimed it. */
export async function readProvenAt(tx: Reader, siteId: string): Promise<Date | null> {
  const { domainProvenAt } = await tx.site.findUniqueOrThrow({
    where: { id: siteId },
    select: { domainProvenAt: true },
  });
  return domainProvenAt;
}

/** The site that has proven the domain, whoever owns it. */
export const findProvenHolder = (
  tx: Reader,
  mode: Mode,
  domain: string,
): Promise<{ id: string; orgId: string } | null> =>
  tx.site.findFirst({
    where: { mode, primaryDomain: domain, holdsDomain: true, domainProvenAt: { not: null } },
    select: { id: true, orgId: true },
  });

interface Taking {
  siteId: string;
  mode: Mode;
  domain: string;
  provenAt: Date;
  /** The site that loses the domain because its proof has gone; null if nobody had the domain. */
  formerSiteId: string | null;
}

/** Gives the domain to the site. False if another site has come to have it meanwhile. */
export async function takeDomain(tx: Tx, { siteId, mode, domain, provenAt, formerSiteId }: Taking): Promise<boolean> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`${mode} ${domain}`}, 0))`;
  if (formerSiteId !== null)
    await tx.site.updateMany({ where: { id: formerSiteId, primaryDomain: domain }, data: { domainProvenAt: null } });
  const holder = await findProvenHolder(tx, mode, domain);
  if (holder !== null && holder.id !== siteId) return false;
  await tx.site.update({ where: { id: siteId }, data: { domainProvenAt: provenAt } });
  return true;
}

/** Domains that other sites have, so that a deleted site cannot return with them. */
export interface HeldDomains {
  /** Domains of other sites of the same organisation. */
  own: ReadonlySet<string>;
  /** The domains whose control somebody has proven. */
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
 * Whether a site cannot have its domain back. A domain that others have proven counts only against a site that had
 * proven it too: an organisation that merely claimed a domain must not learn who else is a customer here.
 */
export const isHeld = (
  { own, proven }: HeldDomains,
  site: { primaryDomain: string; domainProvenAt: Date | null },
): boolean => own.has(site.primaryDomain) || (site.domainProvenAt !== null && proven.has(site.primaryDomain));
