-- The tables of OpenPAI 1.8, as far as its own programs read and write them.
CREATE TABLE frameworks (
    "insertedAt" timestamptz, name varchar(64) PRIMARY KEY, namespace varchar(64), "jobName" varchar(256), "userName" varchar(256),
    "jobConfig" text, "executionType" varchar(32), "creationTime" timestamptz, "launchTime" timestamptz, "virtualCluster" varchar(256), "jobPriority" varchar(256),
    "totalGpuNumber" integer, "totalTaskNumber" integer, "totalTaskRoleNumber" integer, "logPathInfix" varchar(256),
    "submissionTime" timestamptz NOT NULL, "dockerSecretDef" text, "configSecretDef" text, "priorityClassDef" text,
    retries integer, "retryDelayTime" integer, "platformRetries" integer, "resourceRetries" integer, "userRetries" integer,
    "completionTime" timestamptz, "appExitCode" integer, "subState" varchar(32), state varchar(32), snapshot text,
    "requestSynced" boolean NOT NULL DEFAULT false, "apiServerDeleted" boolean NOT NULL DEFAULT false, archived boolean NOT NULL DEFAULT false,
    "updatedAt" timestamptz NOT NULL
);
CREATE INDEX frameworks_submission_time ON frameworks ("submissionTime");

CREATE TABLE framework_history (
    "insertedAt" timestamptz, uid varchar(36) PRIMARY KEY, "frameworkName" varchar(64) NOT NULL REFERENCES frameworks (name) ON DELETE CASCADE ON UPDATE CASCADE,
    "attemptIndex" integer, "historyType" varchar(16) NOT NULL DEFAULT 'retry', snapshot text, "updatedAt" timestamptz NOT NULL
);
CREATE INDEX framework_history_framework_name ON framework_history ("frameworkName");

CREATE TABLE task_history (
    "insertedAt" timestamptz, uid varchar(36) PRIMARY KEY, "frameworkName" varchar(64) NOT NULL REFERENCES frameworks (name) ON DELETE CASCADE ON UPDATE CASCADE,
    "attemptIndex" integer, "taskroleName" varchar(256), "taskName" varchar(256), "taskIndex" integer, "taskUid" varchar(36) NOT NULL,
    "taskAttemptIndex" integer, "podUid" varchar(36), "historyType" varchar(16) NOT NULL DEFAULT 'retry', snapshot text, "updatedAt" timestamptz NOT NULL
);
CREATE INDEX task_history_task_uid ON task_history ("taskUid");

CREATE TABLE framework_events (
    "insertedAt" timestamptz, uid varchar(36) PRIMARY KEY, "frameworkName" varchar(64) NOT NULL REFERENCES frameworks (name) ON DELETE CASCADE ON UPDATE CASCADE,
    "podUid" varchar(36), "taskroleName" varchar(256), "taskName" varchar(256), "taskIndex" integer, type varchar(32) NOT NULL, reason varchar(64),
    message text, "firstTimestamp" timestamptz, "lastTimestamp" timestamptz, count integer, "sourceComponent" varchar(255), "sourceHost" varchar(255),
    event text, "updatedAt" timestamptz NOT NULL
);
CREATE INDEX framework_events_framework_name ON framework_events ("frameworkName");

CREATE TABLE tags (
    "insertedAt" timestamptz, uid varchar(36) PRIMARY KEY, "frameworkName" varchar(64) NOT NULL REFERENCES frameworks (name) ON DELETE CASCADE ON UPDATE CASCADE,
    name varchar(64) NOT NULL, "updatedAt" timestamptz NOT NULL
);
CREATE INDEX tags_framework_name ON tags ("frameworkName");
