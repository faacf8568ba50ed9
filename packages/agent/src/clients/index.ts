export {
  createDatabaseHostClient,
  createDatabaseHostReaderClient,
  type DatabaseHostClient,
  type DatabaseHostReaderClient,
} from './database-client';
export {
  createSiteHostClient,
  createSiteHostReaderClient,
  type SiteHostClient,
  type SiteHostReaderClient,
} from './site-client';
