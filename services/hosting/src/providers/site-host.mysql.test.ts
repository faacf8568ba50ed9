/**
 * @tier long
 * @processes
 */
import { siteHostContract } from '../../test/site-host-contract';
import { openLocalRig } from '../../test/site-host-rig';
import { withPrograms } from '../../test/site-programs';

withPrograms('the site host local, of sites with MySQL', () => {
  siteHostContract((archiveKey) => openLocalRig(archiveKey, 'mysql'));
});
