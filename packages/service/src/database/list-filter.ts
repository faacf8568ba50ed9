import type { CreatedBetween } from '@drydock/contracts/platform/values';

/** Prisma's condition for rows that were created from the first moment on and before the second. */
export const createdBetween = ({ created_after: from, created_before: to }: CreatedBetween) =>
  from === undefined && to === undefined
    ? {}
    : { createdAt: { ...(from === undefined ? {} : { gte: from }), ...(to === undefined ? {} : { lt: to }) } };

/** Prisma's condition for rows whose `field` has one of `values`. If `values` is undefined, all rows meet it. */
export const oneOf = <Name extends string, Value>(field: Name, values: Value[] | undefined) =>
  (values === undefined ? {} : { [field]: { in: values } }) as { [Key in Name]?: { in: Value[] } };

/** Prisma's condition for rows with this value in their metadata. If `metadata` is undefined, all rows meet it. */
export const carrying = (metadata: { name: string; value: string } | undefined) =>
  metadata === undefined ? {} : { metadata: { path: [metadata.name], equals: metadata.value } };

/**
 * Prisma's condition for rows with `text` in one of these fields. If `text` is undefined, all rows meet it. The
 * wildcards of LIKE are escaped here, because Prisma does not escape them.
 */
export const holding = (text: string | undefined, ...fields: string[]) =>
  text === undefined
    ? {}
    : {
        OR: fields.map((field) => ({
          [field]: { contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' as const },
        })),
      };
