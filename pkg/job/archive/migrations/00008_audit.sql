-- +goose Up
-- Who did what. Rows are only added, and removed when they are old.
CREATE TABLE audit (
    id        TEXT PRIMARY KEY,
    time      BIGINT NOT NULL,
    request   TEXT NOT NULL,
    actor     TEXT NOT NULL,
    actor_uid TEXT NOT NULL,
    token     TEXT NOT NULL,
    address   TEXT NOT NULL,
    verb      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    object    TEXT NOT NULL,
    owner     TEXT NOT NULL,
    vc        TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    status    BIGINT NOT NULL,
    reason    TEXT NOT NULL,
    detail    TEXT NOT NULL -- JSON, or empty
);
CREATE INDEX audit_time ON audit (time DESC, id DESC);
CREATE INDEX audit_actor ON audit (actor, time DESC, id DESC);
CREATE INDEX audit_owner ON audit (owner, time DESC, id DESC);

-- +goose Down
DROP TABLE audit;
