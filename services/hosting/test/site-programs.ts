import { listFetched } from '@drydock/mysql';
import { describeWith } from '@drydock/testing/skipped';

const isThere = listFetched().some(({ flavour }) => flavour === 'mariadb');

/** A `describe` for suites that need a MariaDB of the site host. */
export const withPrograms = describeWith(isThere ? '' : 'npm run engines -- mariadb@11.8');
