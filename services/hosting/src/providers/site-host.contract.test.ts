/** @processes */
import { siteHostContract } from '../../test/site-host-contract';
import { openLocalRig } from '../../test/site-host-rig';

/** ssh/ssh-contract.test.ts runs the same tests over ssh. */
describe('the site host local', () => {
  siteHostContract((archiveKey) => openLocalRig(archiveKey));
});
