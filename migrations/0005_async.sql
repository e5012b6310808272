-- Calls whose handlers report later, and calls that somebody asked to cancel.

alter table calls
    add column cancel_requested boolean not null default false,
    -- Of a call of an asynchronous handler that has not ended: when it is given up. A running one becomes unknown then, a pending one
    -- timed_out.
    add column due_at timestamptz,
    -- What was reported, so that the same report again is known as a repeat: SHA-256.
    add column callback_hash bytea,
    -- A picture that was reported, for whoever waits at another replica; `result` has only a text in its place.
    add column picture json;

-- An ordinary call has no such time, so this costs it nothing.
create index calls_due on calls (due_at) where due_at is not null;

-- Reports are written for many tenants at once; who waits and who gives up asks for those of all.
grant select (due_at, cancel_requested, lease_owner, attempts) on calls to toolhook_system;
grant update (due_at, callback_hash, picture) on calls to toolhook_system;
