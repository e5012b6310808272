-- The audit trail: every change to tenants, keys, handlers and tools, in one chain for each tenant and one for the operators.
--
-- Neither table refers to tenants: a chain stays when its tenant is removed. The operators' chain is that of the nil uuid.

-- Where each chain ends. The update of this row makes the writers of a chain take turns, so its numbers have no gaps.
create table audit_chains (
    tenant_id uuid primary key,
    sequence bigint not null default 0,
    hash text not null default repeat('0', 64)
);

create table audit (
    tenant_id uuid not null,
    sequence bigint not null, -- from 1
    at timestamptz not null,
    actor text collate "C" not null, -- a key's public id, or `cli`
    role text not null,
    request_id text,
    kind text collate "C" not null constraint audit_kind_check check (kind in ('tenant', 'key', 'handler', 'tool')),
    name text collate "C" not null,
    action text collate "C" not null,
    version integer, -- of a handler or a tool
    tenant_chain uuid, -- of a tenant: the chain of what it owns
    before_hash text, -- of what the API showed; null of what was not there, or could not be read
    after_hash text,
    changed text [] not null, -- names of members
    secrets_changed boolean not null,
    previous_hash text not null,
    hash text not null,
    primary key (tenant_id, sequence)
);

create index audit_thing on audit (tenant_id, kind, name, sequence);

-- A row is only added behind the last one of its chain.
create function audit_append() returns trigger language plpgsql as $$
begin
    update audit_chains set sequence = new.sequence, hash = new.hash
    where tenant_id = new.tenant_id and sequence = new.sequence - 1 and hash = new.previous_hash;
    if not found then
        raise exception 'the audit trail''s row % does not follow the last one of its chain', new.sequence;
    end if;
    return new;
end
$$;

create trigger audit_append before insert on audit for each row execute function audit_append();

-- Nobody changes what happened, its owner included.
create function audit_refuse() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is only added to: no % of %', tg_op, tg_table_name;
end
$$;

create trigger audit_refuse before update or delete or truncate on audit
for each statement execute function audit_refuse();

create trigger audit_chains_refuse before delete or truncate on audit_chains
for each statement execute function audit_refuse();

-- A chain's end moves forward by one row, or is locked where it is.
create function audit_chains_forward() returns trigger language plpgsql as $$
begin
    if new.tenant_id = old.tenant_id and (
        new.sequence = old.sequence + 1 or (new.sequence = old.sequence and new.hash = old.hash)
    ) then
        return new;
    end if;
    raise exception 'the audit trail is only added to: its end goes forward';
end
$$;

create trigger audit_chains_forward before update on audit_chains for each row execute function audit_chains_forward();

-- A tenant's changes see and lengthen its own chain; the operators' see theirs, and tell a tenant's of what they did to it.
select toolhook_wall('audit');
select toolhook_wall('audit_chains');

grant select, insert on audit to toolhook_app, toolhook_system;
grant select, insert on audit_chains to toolhook_app, toolhook_system;
grant update (sequence, hash) on audit_chains to toolhook_app, toolhook_system;

revoke execute on function audit_append(), audit_refuse(), audit_chains_forward() from public;
