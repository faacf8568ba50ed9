import { dumpJobSchema, loadDumpJobSchema, verifyDumpJobSchema } from '@drydock/agent/database';
import { z } from 'zod';

/** A server in the input of a job's program. It includes the administrator's login. */
const serverSchema = z.strictObject({
  login: z.strictObject({ socketPath: z.string(), user: z.string(), password: z.string() }),
  flavour: z.enum(['mariadb', 'mysql']),
  release: z.string(),
});
export type MysqlServerSetup = z.infer<typeof serverSchema>;

const dumpSetupSchema = z.strictObject({
  kind: z.literal('dump'),
  database_id: z.string(),
  server: serverSchema,
  major: z.string(),
  expected_bytes: z.number(),
  archive: dumpJobSchema,
});
const loadSetupSchema = z.strictObject({
  kind: z.literal('load_dump'),
  server: serverSchema,
  archive: loadDumpJobSchema,
});
const trialSetupSchema = z.strictObject({
  kind: z.enum(['verify_dump', 'try_dump']),
  database_id: z.string(),
  server: serverSchema,
  /** The port on which clients reach the server with TLS. */
  port: z.int(),
  ca_certificate: z.string(),
  archive: verifyDumpJobSchema,
});
const stageSetupSchema = z.strictObject({
  kind: z.literal('stage'),
  stage: z.enum(['copy_data', 'catch_up']),
  old: serverSchema,
  target: serverSchema,
  secret: z.string(),
});
const precheckSetupSchema = z.strictObject({
  kind: z.literal('precheck'),
  old: serverSchema,
  /** An empty server of the new major; null without a trial. */
  trial: serverSchema.nullable(),
  free_bytes: z.number(),
});
export const mysqlSetupSchema = z.discriminatedUnion('kind', [
  dumpSetupSchema,
  loadSetupSchema,
  trialSetupSchema,
  stageSetupSchema,
  precheckSetupSchema,
]);

export type MysqlDumpSetup = z.infer<typeof dumpSetupSchema>;
export type MysqlLoadSetup = z.infer<typeof loadSetupSchema>;
export type MysqlTrialSetup = z.infer<typeof trialSetupSchema>;
export type MysqlSetup = z.infer<typeof mysqlSetupSchema>;
