-- The spine: tenants, keys, handlers, tools with every version kept, and the log of calls.
--
-- Every table that a tenant owns starts its primary key with tenant_id, and references between such tables carry it
-- too, so that no row can point at another tenant's and the schema distributes by that column as it is.
--
-- Documents that people write are `json`, not `jsonb`: their text comes back byte for byte, keys in the written order.

create table tenants (
    id uuid primary key,
    name text collate "C" not null constraint tenants_name_key unique, -- ordered by byte everywhere
    display_name text,
    limits json not null,
    -- Goes up in the transaction of every change to the tenant's tools, handlers or limits. The update of this row also
    -- makes the tenant's writers take turns.
    registry_version bigint not null default 1,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- Keys that belong to no tenant.
create table operator_keys (
    id text primary key,
    hash bytea not null,
    name text,
    created_at timestamptz not null default now(),
    expires_at timestamptz
);

create table keys (
    tenant_id uuid not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    hash bytea not null, -- SHA-256 of the secret part; 256 random bits need no slower hash
    role text not null constraint keys_role_check check (role in ('viewer', 'agent', 'editor', 'admin')),
    name text,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    primary key (tenant_id, id)
);

-- A request brings only the public id. Not unique, so that the table can be distributed by tenant.
create index keys_id on keys (id);

create table handlers (
    tenant_id uuid not null references tenants (id) on delete cascade,
    id uuid not null,
    name text collate "C", -- of a handler that was made by itself
    owner text collate "C", -- the tool that a handler written in place belongs to; a changed one is a new row, for the old versions' sake
    version integer not null default 1,
    settings json not null,
    headers bytea, -- sealed
    signing_secret bytea, -- sealed
    previous_signing_secret bytea, -- sealed; signs beside the new one for a grace time after a rotation
    previous_until timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, id),
    constraint handlers_name_key unique (tenant_id, name),
    constraint handlers_name_or_owner check ((name is null) <> (owner is null))
);

create index handlers_owner on handlers (tenant_id, owner) where owner is not null;

create table tools (
    tenant_id uuid not null references tenants (id) on delete cascade,
    name text collate "C" not null,
    version integer not null,
    description text not null,
    input_schema json not null,
    output_schema json,
    options json not null,
    limits json not null,
    tags text [] not null,
    enabled boolean not null,
    handler_id uuid not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint tools_pkey primary key (tenant_id, name),
    constraint tools_handler_fkey foreign key (tenant_id, handler_id) references handlers (tenant_id, id)
);

create index tools_handler on tools (tenant_id, handler_id);

create table tool_versions (
    tenant_id uuid not null,
    tool text collate "C" not null,
    version integer not null,
    description text not null,
    input_schema json not null,
    output_schema json,
    options json not null,
    limits json not null,
    tags text [] not null,
    enabled boolean not null,
    handler_name text, -- null: handler_id is a handler written in place, which stays as long as the tool
    handler_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, tool, version),
    foreign key (tenant_id, tool) references tools (tenant_id, name) on delete cascade
);

create table calls (
    tenant_id uuid not null references tenants (id) on delete cascade,
    id uuid not null, -- version 7: in order of time
    tool text not null, -- as it was called; it may be no tool of the tenant's
    tool_version integer,
    format text,
    call_id text, -- the provider's, which repeats across conversations
    caller text not null,
    status text not null,
    input json,
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
    primary key (tenant_id, id)
);

create index calls_tool on calls (tenant_id, tool, id);
