-- +goose Up
-- 1 where the job's Framework is known to be gone: then no other source lists it. Who writes the history sets it.
ALTER TABLE jobs ADD COLUMN gone BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_here ON jobs (uid) WHERE gone = 0;

-- How many there are is counted in the first. The others are in the order of lists.
CREATE INDEX jobs_gone ON jobs (gone, user_name, vc, state);
CREATE INDEX jobs_by_name ON jobs (name, uid);
CREATE INDEX jobs_by_gpus ON jobs (gpus, uid);
CREATE INDEX jobs_by_tasks ON jobs (tasks, uid);
CREATE INDEX jobs_by_retries ON jobs (retries, uid);
CREATE INDEX jobs_by_completed ON jobs (completed, uid);

-- +goose Down
DROP INDEX jobs_by_completed;
DROP INDEX jobs_by_retries;
DROP INDEX jobs_by_tasks;
DROP INDEX jobs_by_gpus;
DROP INDEX jobs_by_name;
DROP INDEX jobs_gone;
DROP INDEX jobs_here;
ALTER TABLE jobs DROP COLUMN gone;
