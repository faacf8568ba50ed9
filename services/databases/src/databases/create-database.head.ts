import { z } from 'zod';

export const createDatabaseHead = {
  kind: 'create_database',
  input: z.strictObject({ major: z.int(), size: z.string(), databaseName: z.string(), username: z.string() }),
  steps: [{ name: 'provision' }],
} as const;
