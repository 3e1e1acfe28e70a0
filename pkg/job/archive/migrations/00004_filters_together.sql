-- +goose Up
-- Filters that are given together, in the order of a list: a page then costs what it shows, however many jobs there are.
CREATE INDEX jobs_user_vc ON jobs (user_name, vc, submitted DESC, uid DESC);
CREATE INDEX jobs_vc_state ON jobs (vc, state, submitted DESC, uid DESC);
CREATE INDEX jobs_user_vc_state ON jobs (user_name, vc, state, submitted DESC, uid DESC);

-- +goose Down
DROP INDEX jobs_user_vc_state;
DROP INDEX jobs_vc_state;
DROP INDEX jobs_user_vc;
