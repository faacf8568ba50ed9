-- Organisations that may roll servers back may power them as well; which of their keys may is for them to say.
UPDATE "orgs" SET "permissions" = array_append("permissions", 'compute.power.manage')
WHERE 'sites.delete' = ANY ("permissions") AND NOT 'compute.power.manage' = ANY ("permissions");
