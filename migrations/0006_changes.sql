-- What tells other replicas that a tenant's tools changed: a notification for those who hear it, and a mark for those who ask.

-- Every row says which transaction changed it last. Whoever remembers the oldest transaction that was still running when it asked
-- finds by this, with one look at an index, all that was committed since; no clock and no order of commits matters.
alter table tenants add column changed_in xid8 not null default pg_current_xact_id();

create index tenants_changed on tenants (changed_in);

create function tenants_changed() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        -- No version of it is recent enough any more.
        perform pg_notify('toolhook_changes', old.id || ' ' || 9223372036854775807);
        return old;
    end if;
    new.changed_in := pg_current_xact_id();
    perform pg_notify('toolhook_changes', new.id || ' ' || new.registry_version);
    return new;
end
$$;

create trigger tenants_changed before update of registry_version or delete on tenants
for each row execute function tenants_changed();

revoke execute on function tenants_changed() from public;
