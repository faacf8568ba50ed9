import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // env() would throw without DATABASE_URL, and then a bare clone could not generate the client.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
