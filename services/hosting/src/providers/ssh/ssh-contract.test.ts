/**
 * Runs hosts over ssh, one for each database server.
 *
 * @tier long
 * @processes
 */
import { siteHostContract } from '../../../test/site-host-contract';
import { describeOn, sshRigs } from '../../../test/ssh-host';

describe.each(sshRigs)('the site host $name', (host) => {
  describeOn(host)('keeps the promises of every driver', () => siteHostContract(host.open));
});
