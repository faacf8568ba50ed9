import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // A clone without DATABASE_URL must generate too, and `env()` throws if the variable is unset.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
