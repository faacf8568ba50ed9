import type { CreatedBetween } from '@drydock/contracts/platform/filters';

/** What was created between two moments, as a condition of Prisma's. */
export const createdBetween = ({ created_after: from, created_before: to }: CreatedBetween) =>
  from === undefined && to === undefined
    ? {}
    : { createdAt: { ...(from === undefined ? {} : { gte: from }), ...(to === undefined ? {} : { lt: to }) } };

/** What a list is narrowed to where its field has one of these values; undefined for all. */
export const oneOf = <Name extends string, Value>(field: Name, values: Value[] | undefined) =>
  (values === undefined ? {} : { [field]: { in: values } }) as { [Key in Name]?: { in: Value[] } };

/** What has this value in its metadata; undefined for all. */
export const carrying = (metadata: { name: string; value: string } | undefined) =>
  metadata === undefined ? {} : { metadata: { path: [metadata.name], equals: metadata.value } };

/** What has `text` in one of these fields. Prisma passes on what LIKE would take for a pattern, hence the backslashes. */
export const holding = (text: string | undefined, ...fields: string[]) =>
  text === undefined
    ? {}
    : { OR: fields.map((field) => ({ [field]: { contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' as const } })) };
