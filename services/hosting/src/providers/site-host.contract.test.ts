/** @processes */
import { siteHostContract } from '../../test/site-host-contract';
import { openLocalRig } from '../../test/site-host-rig';

/** The same of hosts over ssh is in ssh/ssh-contract.test.ts. */
describe('the site host local', () => {
  siteHostContract((archiveKey) => openLocalRig(archiveKey));
});
