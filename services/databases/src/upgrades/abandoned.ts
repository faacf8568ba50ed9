import { restoreDatabaseHead } from '../restores/restore-database.head';
import { endAbandonedUpgradeHead } from './end-abandoned-upgrade.head';
import { upgradeDatabaseHead } from './upgrade-database.head';

/** What staff are told who abandon work on a database: the state it is left in, and what comes next. */
export const abandoned = {
  [upgradeDatabaseHead.kind]:
    `The upgrade is brought to its end by a workflow of its own, ${endAbandonedUpgradeHead.kind}, which comes next in the database's list of workflows. ` +
    'Until that has succeeded the database is provisioning and may take no writes. Then it is available and takes them: with its old version when it had not ' +
    'been switched over, else with the new one, and the old instance is kept for a day.',
  [restoreDatabaseHead.kind]:
    `The restore is brought to its end by a workflow of its own, ${endAbandonedUpgradeHead.kind}, which comes next in the database's list of workflows. ` +
    'Until that has succeeded the database is provisioning. Then it is available: as it was when it had not been switched over, else as the backup has it, and the ' +
    'replaced instance is kept for a day, also where it did not become a backup.',
  [endAbandonedUpgradeHead.kind]:
    'The database is left as it is, perhaps without taking writes, and its status is failed: it can only be deleted. Had it been retried instead, it would have ' +
    'gone on.',
};
