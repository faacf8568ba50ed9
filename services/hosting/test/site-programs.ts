import { listFetched } from '@drydock/mysql';
import { describeWith } from '@drydock/testing/skipped';

const isThere = listFetched().some(({ flavour }) => flavour === 'mariadb');

/** A `describe` for suites in which the site agent starts MariaDB. */
export const withPrograms = describeWith(isThere ? '' : 'npm run engines -- mariadb@11.8');
