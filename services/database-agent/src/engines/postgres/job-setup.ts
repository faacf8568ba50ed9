import {
  dumpJobSchema,
  loadDumpJobSchema,
  movePathSchema,
  upgradeStageSchema,
  verifyDumpJobSchema,
} from '@drydock/agent/database';
import { z } from 'zod';

/** The input of the job programs. The URLs lead to the database `postgres`, with the superuser's login. */
const databaseSchema = z.strictObject({ url: z.string(), databaseName: z.string() });
const moveSchema = z.strictObject({
  oldUrl: z.string(),
  targetUrl: z.string(),
  databaseName: z.string(),
  path: movePathSchema,
  secret: z.string(),
  fence: z.string(),
});
const scratchSchema = z.strictObject({ url: z.string(), admin_url: z.string(), ca_certificate: z.string() });

export const stageSetupSchema = z.strictObject({
  kind: z.literal('stage'),
  stage: upgradeStageSchema,
  move: moveSchema,
  /**
   * The exported snapshot of the transaction that has been open in the new database since the cutover. Null before the
   * cutover, or if the snapshot was lost.
   */
  snapshot_id: z.string().nullable(),
});
export const precheckSetupSchema = z.strictObject({
  kind: z.literal('precheck'),
  database: databaseSchema,
  to_major: z.int(),
  extensions_of_target: z.array(z.string()),
  free_bytes: z.number(),
  /** An empty server of the new major, in which the schema is made on trial; null without a trial. */
  trial: moveSchema.nullable(),
});
export const dumpSetupSchema = z.strictObject({
  kind: z.literal('dump'),
  database_id: z.string(),
  database: databaseSchema,
  major: z.int(),
  expected_bytes: z.number(),
  archive: dumpJobSchema,
});
export const verifySetupSchema = z.strictObject({
  kind: z.literal('verify_dump'),
  database_id: z.string(),
  scratch: scratchSchema,
  archive: verifyDumpJobSchema,
});
export const trialSetupSchema = verifySetupSchema.extend({ kind: z.literal('try_dump') });
export const loadSetupSchema = z.strictObject({
  kind: z.literal('load_dump'),
  move: moveSchema,
  archive: loadDumpJobSchema,
});
export const setupSchema = z.discriminatedUnion('kind', [
  stageSetupSchema,
  precheckSetupSchema,
  dumpSetupSchema,
  verifySetupSchema,
  trialSetupSchema,
  loadSetupSchema,
]);

export type StageSetup = z.infer<typeof stageSetupSchema>;
export type PrecheckSetup = z.infer<typeof precheckSetupSchema>;
export type DumpSetup = z.infer<typeof dumpSetupSchema>;
export type VerifySetup = z.infer<typeof verifySetupSchema>;
export type TrialSetup = z.infer<typeof trialSetupSchema>;
export type LoadSetup = z.infer<typeof loadSetupSchema>;
export type Setup = z.infer<typeof setupSchema>;
