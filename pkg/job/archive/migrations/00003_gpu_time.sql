-- +goose Up
-- GPU time. A hold is the GPUs of one pod, from its machine to its end; jobs may be deleted, holds stay. Those of jobs that
-- ended days ago are summed up by hours, once: gpu_folded says of which jobs, so that a late write of one adds nothing.
CREATE TABLE gpu_holds (
    pod_uid       TEXT PRIMARY KEY,
    uid           TEXT NOT NULL,   -- of the job
    job           TEXT NOT NULL,
    pod           TEXT NOT NULL,
    user_name     TEXT NOT NULL,
    vc            TEXT NOT NULL,
    type          TEXT NOT NULL,   -- model of the GPUs, or empty
    opportunistic BIGINT NOT NULL, -- 0 or 1
    gpus          BIGINT NOT NULL,
    started       BIGINT NOT NULL,
    seen          BIGINT NOT NULL, -- last, while it is open
    ended         BIGINT,
    outcome       TEXT NOT NULL    -- preempted, failed, or empty
);
CREATE INDEX gpu_holds_uid ON gpu_holds (uid);
CREATE INDEX gpu_holds_seen ON gpu_holds (seen);
CREATE INDEX gpu_holds_open ON gpu_holds (pod_uid) WHERE ended IS NULL;

CREATE TABLE gpu_hours (
    hour          BIGINT NOT NULL, -- its beginning
    vc            TEXT NOT NULL,
    user_name     TEXT NOT NULL,
    type          TEXT NOT NULL,
    opportunistic BIGINT NOT NULL,
    held          BIGINT NOT NULL, -- GPU seconds
    preempted     BIGINT NOT NULL, -- of these, in attempts that ended so
    failed        BIGINT NOT NULL,
    PRIMARY KEY (hour, vc, user_name, type, opportunistic)
);

CREATE TABLE gpu_folded (
    uid    TEXT PRIMARY KEY,
    folded BIGINT NOT NULL
);
CREATE INDEX gpu_folded_folded ON gpu_folded (folded);

-- +goose Down
DROP TABLE gpu_folded;
DROP TABLE gpu_hours;
DROP TABLE gpu_holds;
