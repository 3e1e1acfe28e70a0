-- +goose Up
-- One text for SQLite and PostgreSQL: SQLite stores a BYTEA as the blob that it is given.
-- Times are microseconds since 1970, UTC. Completions are JSON.
CREATE TABLE jobs (
    uid        TEXT PRIMARY KEY, -- of the Framework: names come back when a job was deleted
    framework  TEXT NOT NULL,
    user_name  TEXT NOT NULL,
    name       TEXT NOT NULL,
    vc         TEXT NOT NULL,
    priority   TEXT NOT NULL,
    state      TEXT NOT NULL,
    phrase     TEXT NOT NULL,
    code       BIGINT,           -- of the completion
    gpus       BIGINT NOT NULL,
    tasks      BIGINT NOT NULL,
    retries    BIGINT NOT NULL,
    submitted  BIGINT NOT NULL,
    started    BIGINT,
    completed  BIGINT,
    keywords   TEXT NOT NULL,    -- user, name and virtual cluster in lower case, one a line
    code_sha256 TEXT NOT NULL    -- of the code that it was submitted with, or empty
);

-- Every filter of a list, in the order of a list. Words are looked for in the first: it is a tenth of the table.
CREATE INDEX jobs_submitted ON jobs (submitted DESC, uid DESC, keywords);
CREATE INDEX jobs_user ON jobs (user_name, submitted DESC, uid DESC);
CREATE INDEX jobs_vc ON jobs (vc, submitted DESC, uid DESC);
CREATE INDEX jobs_state ON jobs (state, submitted DESC, uid DESC);
CREATE INDEX jobs_user_state ON jobs (user_name, state, submitted DESC, uid DESC);
CREATE INDEX jobs_framework ON jobs (framework, submitted DESC, uid DESC);
CREATE INDEX jobs_completed ON jobs (completed);
CREATE INDEX jobs_code ON jobs (code_sha256);

-- Long texts lie apart from what lists read.
CREATE TABLE configs (
    uid    TEXT PRIMARY KEY REFERENCES jobs (uid) ON DELETE CASCADE,
    config TEXT NOT NULL
);

CREATE TABLE attempts (
    uid        TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    id         BIGINT NOT NULL,
    started    BIGINT NOT NULL,
    run        BIGINT,
    completed  BIGINT,
    completion TEXT,
    PRIMARY KEY (uid, id)
);

CREATE TABLE tasks (
    uid        TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    attempt    BIGINT NOT NULL,
    role       TEXT NOT NULL,  -- in the Framework
    task       BIGINT NOT NULL,
    id         BIGINT NOT NULL, -- of the task's attempt
    role_name  TEXT NOT NULL,  -- as the user spells it
    state      TEXT NOT NULL,
    pod        TEXT NOT NULL,
    pod_uid    TEXT NOT NULL,
    node       TEXT NOT NULL,
    started    BIGINT NOT NULL,
    run        BIGINT,
    completed  BIGINT,
    completion TEXT,
    PRIMARY KEY (uid, attempt, role, task, id)
);

CREATE TABLE events (
    uid       TEXT PRIMARY KEY, -- of the event
    framework TEXT NOT NULL,
    time      BIGINT NOT NULL,
    type      TEXT NOT NULL,
    reason    TEXT NOT NULL,
    message   TEXT NOT NULL,
    object    TEXT NOT NULL,
    count     BIGINT NOT NULL,
    source    TEXT NOT NULL
);
CREATE INDEX events_framework ON events (framework, time);
CREATE INDEX events_time ON events (time);

-- The uid refers to jobs, whose row may come later.
CREATE TABLE logs (
    uid          TEXT NOT NULL,
    role         TEXT NOT NULL,
    task         BIGINT NOT NULL,
    attempt      BIGINT NOT NULL,
    task_attempt BIGINT NOT NULL,
    truncated    BOOLEAN NOT NULL,
    stored       BIGINT NOT NULL,
    data         BYTEA NOT NULL, -- gzip
    PRIMARY KEY (uid, attempt, role, task, task_attempt)
);
CREATE INDEX logs_stored ON logs (stored);

-- An upload is a row that isn't complete, and its chunks. Being complete is one change of one row.
CREATE TABLE code (
    upload   TEXT PRIMARY KEY,
    sha256   TEXT NOT NULL,
    size     BIGINT NOT NULL,
    stored   BIGINT NOT NULL, -- or asked for last
    complete BOOLEAN NOT NULL
);
CREATE UNIQUE INDEX code_sha256 ON code (sha256) WHERE complete;

CREATE TABLE code_chunks (
    upload TEXT NOT NULL REFERENCES code (upload) ON DELETE CASCADE,
    n      BIGINT NOT NULL,
    data   BYTEA NOT NULL,
    PRIMARY KEY (upload, n)
);

-- +goose Down
DROP TABLE code_chunks;
DROP TABLE code;
DROP TABLE logs;
DROP TABLE events;
DROP TABLE tasks;
DROP TABLE attempts;
DROP TABLE configs;
DROP TABLE jobs;
