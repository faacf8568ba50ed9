import { listFetched } from '@drydock/mysql';
import { describeWith } from '@drydock/testing/skipped';

const isThere = listFetched().some(({ flavour }) => flavour === 'mariadb');

/** `describe` where the site host can run a MariaDB. */
export const withPrograms = describeWith(isThere ? '' : 'npm run engines -- mariadb@11.8');
