-- Walls between tenants that Postgres itself holds: row-level security, under two roles that nobody logs in as.
--
-- The service takes one of them at the start of every transaction, and never works as its login:
--   toolhook_app     one tenant's rows: those of the tenant that the transaction names in the setting toolhook.tenant
--   toolhook_system  what serves all tenants: keys by their public id, tenants themselves, the common writing of the log
-- Neither owns anything. A new table of tenants' rows needs two things: `select toolhook_wall('its_name')`, and grants of
-- what is done with it, and no more. What is missing keeps the service from starting, or its statements from working.
-- The owner is held too: a migration that reads or changes rows of such a table says `alter table … no force row level security`
-- before and `alter table … force row level security` after, or an owner that is no superuser finds nothing there.

-- Roles belong to the whole cluster: another database may have made them already, or be making them now.
do $$
declare
    wanted text;
    may_take boolean;
begin
    foreach wanted in array array ['toolhook_app', 'toolhook_system'] loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin noinherit', wanted);
            exception
                when duplicate_object or unique_violation then null;
                when insufficient_privilege then
                    raise exception 'the role % is missing, and % may not make roles: let somebody who may run '
                        '"create role toolhook_app nologin noinherit; create role toolhook_system nologin noinherit" once, then migrate again',
                        wanted, current_user;
            end;
        end if;
        -- Whoever migrates may serve as well. From version 16 on, to have made a role is not yet to be able to take it.
        if current_setting('server_version_num')::integer >= 160000 then
            may_take := pg_has_role(current_user, wanted, 'set');
        else
            may_take := pg_has_role(current_user, wanted, 'member');
        end if;
        if not may_take then
            begin
                execute format('grant %I to %I', wanted, current_user);
            exception
                when insufficient_privilege then null; -- then another login serves, or is refused in words that say what to do
            end;
        end if;
    end loop;
    if not (has_schema_privilege('toolhook_app', 'public', 'usage') and has_schema_privilege('toolhook_system', 'public', 'usage')) then
        grant usage on schema public to toolhook_app, toolhook_system;
    end if;
end
$$;

-- Puts a table behind the wall, its owner included. It grants nothing.
create function toolhook_wall(relation regclass, tenant_column name default 'tenant_id') returns void language plpgsql as $$
declare
    own text := format('%I = nullif(current_setting(''toolhook.tenant'', true), '''')::uuid', tenant_column);
begin
    execute format('alter table %s enable row level security', relation);
    execute format('alter table %s force row level security', relation);
    execute format('create policy tenant on %s to toolhook_app using (%s) with check (%s)', relation, own, own);
    execute format('create policy system on %s to toolhook_system using (true) with check (true)', relation);
end
$$;

revoke execute on function toolhook_wall(regclass, name) from public;

select toolhook_wall('tenants', 'id');
select toolhook_wall('keys');
select toolhook_wall('handlers');
select toolhook_wall('tools');
select toolhook_wall('tool_versions');
select toolhook_wall('calls');
select toolhook_wall('idempotency_keys');
select toolhook_wall('departed_tenants');

-- Of no tenant, so that there is no policy for toolhook_app.
alter table operator_keys enable row level security;
alter table operator_keys force row level security;
create policy system on operator_keys to toolhook_system using (true) with check (true);

grant select on tenants, keys, handlers, tools, tool_versions, calls, idempotency_keys to toolhook_app;
grant update (registry_version) on tenants to toolhook_app;
grant insert, delete on keys to toolhook_app;
grant insert, update, delete on handlers, tools to toolhook_app;
grant insert on tool_versions to toolhook_app;
grant update, delete on calls, idempotency_keys to toolhook_app;

grant select, insert, update, delete on tenants, idempotency_keys to toolhook_system;
grant select, insert, delete on operator_keys, departed_tenants to toolhook_system;
grant select on keys, handlers to toolhook_system; -- a key by its public id; how sealed values stand
grant insert on calls to toolhook_system;
-- It ends calls, and does not read their results.
grant select (tenant_id, id, status, input) on calls to toolhook_system;
grant update (status, tool_version, input, result, error_code, error_message, diagnostic, repairs, attempts, duration_ms,
    lease_owner, lease_until) on calls to toolhook_system;

-- Versions and times of migrations, which a login asks for before it takes a role. Written by hand or restored, it may not be there.
do $$
begin
    if to_regclass('_sqlx_migrations') is not null then
        grant select on _sqlx_migrations to public;
    end if;
end
$$;

-- A partition is reached through its parent, whose policies and grants hold then. By itself it is closed to everybody.
do $$
declare
    partition regclass;
begin
    for partition in select inhrelid::regclass from pg_inherits where inhparent = 'calls'::regclass loop
        execute format('alter table %s enable row level security', partition);
        execute format('alter table %s force row level security', partition);
    end loop;
end
$$;

-- But the upkeep of partitions moves and removes rows of the default one, as its owner.
create policy upkeep on calls_default using (
    current_user = (select pg_get_userbyid(relowner) from pg_class where oid = 'public.calls_default'::regclass));

-- Partitions are made and dropped by their owner, on behalf of a role that owns nothing.
create or replace function calls_add_day(day date) returns boolean language plpgsql
security definer set search_path = public, pg_temp as $$
declare
    name text := 'calls_' || to_char(day, 'YYYYMMDD');
    low uuid := id_at(day::timestamp at time zone 'UTC');
    high uuid := id_at((day + 1)::timestamp at time zone 'UTC');
begin
    if to_regclass(name) is not null then
        return false;
    end if;
    execute format('create table %I (like calls including defaults)', name);
    lock table calls_default in share row exclusive mode;
    execute format(
        'with moved as (delete from calls_default where id >= %L and id < %L returning *) insert into %I select * from moved',
        low, high, name);
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format('alter table calls attach partition %I for values from (%L) to (%L)', name, low, high);
    return true;
end
$$;

alter function calls_drop_before(date) security definer set search_path = public, pg_temp;

revoke execute on function calls_add_day(date), calls_drop_before(date) from public;
grant execute on function calls_add_day(date), calls_drop_before(date) to toolhook_system;
