import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // Not env(): it throws when unset, and then nothing could be generated on a bare clone.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
