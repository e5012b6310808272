-- The log of calls by days, calls that are running, and idempotency keys.

-- The least id of version 7 that can be made at a time: their first 48 bits are milliseconds, so a range of time is a range of
-- ids.
create function id_at(at timestamptz) returns uuid language sql immutable parallel safe as $$
    select (lpad(to_hex(greatest(floor(extract(epoch from at) * 1000)::bigint, 0)), 12, '0') || repeat('0', 20))::uuid
$$;

alter table calls rename to calls_before;
alter table calls_before rename constraint calls_pkey to calls_before_pkey;
alter index calls_tool rename to calls_before_tool;

-- Without a reference to tenants: it would cost each call a look at its tenant's row, and one tenant that goes would cost the
-- records of all that are written together. departed_tenants says whose records are left to be removed.
create table calls (
    tenant_id uuid not null,
    id uuid not null, -- version 7: in order of time
    tool text not null, -- as it was called; it may be no tool of the tenant's
    tool_version integer,
    format text,
    call_id text, -- the provider's, which repeats across conversations
    caller text not null,
    status text not null,
    input json, -- write-only values masked
    result json,
    error_code text,
    error_message text,
    diagnostic text,
    repairs json not null,
    attempts integer not null,
    duration_ms bigint not null,
    request_id text not null,
    key_id text not null,
    created_at timestamptz not null,
    -- Of a call that is running: who runs it, and until when it may be believed to do so, by this server's clock.
    lease_owner uuid,
    lease_until timestamptz,
    primary key (tenant_id, id)
) partition by range (id);

create index calls_tool on calls (tenant_id, tool, id);
-- Most calls succeed; whoever asks for a status mostly asks for one of the others.
create index calls_status on calls (tenant_id, status, id) where status <> 'succeeded';

-- Where a record goes whose day has no partition yet.
create table calls_default partition of calls default;

-- Makes the partition of a day (UTC), if it is not there. What was caught by the default one meanwhile moves over.
create function calls_add_day(day date) returns boolean language plpgsql as $$
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
    execute format('alter table calls attach partition %I for values from (%L) to (%L)', name, low, high);
    return true;
end
$$;

-- Drops the partitions of the days before this one. Readers and writers of the log are not held up for long: what cannot be
-- locked soon is dropped another time.
create function calls_drop_before(day date) returns integer language plpgsql set lock_timeout = '2s' as $$
declare
    partition record;
    dropped integer := 0;
begin
    for partition in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'calls'::regclass and c.relname ~ '^calls_[0-9]{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < day
        order by c.relname
    loop
        execute format('drop table %I', partition.relname);
        dropped := dropped + 1;
    end loop;
    delete from calls_default where id < id_at(day::timestamp at time zone 'UTC');
    return dropped;
end
$$;

do $$
declare
    day date;
begin
    for day in
        select distinct (created_at at time zone 'UTC')::date from calls_before
        union
        select generate_series((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3, interval '1 day')::date
    loop
        perform calls_add_day(day);
    end loop;
end
$$;

insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result, error_code, error_message,
    diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at)
select tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result, error_code, error_message,
    diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at
from calls_before;

drop table calls_before;

-- Tenants that are gone and whose records may not be yet.
create table departed_tenants (
    tenant_id uuid primary key,
    departed_at timestamptz not null default now()
);

-- Requests that came with an Idempotency-Key. The row is the claim: it is committed before anything is sent.
create table idempotency_keys (
    tenant_id uuid not null,
    route text collate "C" not null,
    key text collate "C" not null,
    body_hash bytea not null,
    calls uuid [] not null, -- by their position in the request; null where a call was left out
    lease_owner uuid, -- one for every time the request is run; null once nobody runs it any more
    lease_until timestamptz not null,
    answer text, -- as it was answered
    created_at timestamptz not null default now(),
    primary key (tenant_id, route, key)
);

create index idempotency_keys_lease on idempotency_keys (lease_until) where answer is null and lease_owner is not null;
create index idempotency_keys_age on idempotency_keys (created_at);
