// Package historytest creates databases like those of OpenPAI, in a real PostgreSQL.
// In: jobs. Out: the rows of the jobs, with the objects that OpenPAI's controller wrote.
package historytest

import (
	"context"
	"crypto/md5" //nolint:gosec // as OpenPAI names its objects
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/postgrestest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

//go:embed schema.sql
var schema string

// Database is a PostgreSQL database with the tables of OpenPAI.
type Database struct {
	// Address is the address of the database for its superuser, who needs no password.
	Address string
	t       testing.TB
	conn    *pgx.Conn
}

// New creates an empty Database.
func New(t testing.TB) *Database {
	t.Helper()
	dsn := postgrestest.DSN(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	d := &Database{t: t, conn: conn}
	d.Address = d.As("postgres")
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // the test has ended by then
	d.Exec(schema)
	return d
}

// As returns the address of the database for another user.
func (d *Database) As(user string) string {
	c := d.conn.Config()
	return (&url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + c.Database, RawQuery: url.Values{"host": {c.Host}}.Encode()}).String()
}

// Exec executes a statement.
func (d *Database) Exec(query string, args ...any) {
	d.t.Helper()
	_, err := d.conn.Exec(d.t.Context(), query, args...)
	require.NoError(d.t, err)
}

// Job describes a job with one role.
type Job struct {
	User, Name, VC, Priority string
	Role                     string // as its user wrote it; "": worker
	Config                   string // "": a default one
	Submitted                time.Time
	Ran                      time.Duration // 0: an hour
	Tasks                    int           // 0: 1
	GPUs                     int           // of each task
	HiveD                    string        // the type of its cells; "": HiveD didn't place it
	Code                     int32
	Attempt                  int32
	TaskAttempt              int32 // the attempt of all tasks, the last one
	Running                  bool
}

// Key returns the name of the job's object. The row of the job has the same name.
func (j *Job) Key() string {
	sum := md5.Sum([]byte(j.User + "~" + j.Name)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// UID returns the UID of the job's object.
func (j *Job) UID() string { return uidOf("object", j.Key()) }

func uidOf(words ...string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join(words, "/"))).String()
}

func (j *Job) role() string {
	if j.Role == "" {
		return "worker"
	}
	return j.Role
}

// object returns the name of the role in the job's object.
func (j *Job) object() string { return strings.ReplaceAll(strings.ToLower(j.role()), "_", "") }

func (j *Job) tasks() int { return max(j.Tasks, 1) }

func (j *Job) ran() time.Duration {
	if j.Ran == 0 {
		return time.Hour
	}
	return j.Ran
}

// Begun returns the time when an attempt began to run. One attempt begins every day.
func (j *Job) Begun(attempt int32) time.Time {
	return j.Submitted.Add(time.Minute).Add(time.Duration(attempt) * 24 * time.Hour)
}

type object = map[string]any // of JSON

// Snapshot returns the job's object at the end of an attempt, or in the middle of the attempt if the job is running.
func (j *Job) Snapshot(attempt int32, code int32) map[string]any {
	state := "Completed"
	if attempt < j.Attempt {
		state = "AttemptCompleted"
	}
	if j.Running {
		state = "AttemptRunning"
	}
	a := object{
		"id": attempt, "startTime": j.Begun(attempt).Add(-time.Minute), "runTime": j.Begun(attempt),
		"configMapName": j.Key() + "-attempt", "configMapUID": uidOf("map", j.Key()), "taskRoleStatuses": []any{j.roleStatus(attempt, code)},
	}
	status := object{"state": state, "startTime": j.Submitted, "runTime": j.Begun(0), "transitionTime": j.Begun(attempt).Add(j.ran()),
		"retryPolicyStatus": object{"totalRetriedCount": attempt, "accountableRetriedCount": 0, "retryDelaySec": nil}, "attemptStatus": a}
	if !j.Running {
		a["completionTime"], a["completionStatus"] = j.Begun(attempt).Add(j.ran()), completion(code)
		if attempt == j.Attempt {
			status["completionTime"] = a["completionTime"]
		}
	}
	return object{"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "spec": j.spec(), "status": status,
		"metadata": object{"name": j.Key(), "namespace": "default", "uid": j.UID(), "creationTimestamp": j.Submitted,
			"labels":      object{"userName": j.User, "virtualCluster": j.VC},
			"annotations": object{"jobName": j.Name, "config": j.config(), "totalGpuNumber": fmt.Sprint(j.tasks() * j.GPUs), "requestGeneration": "1"}}}
}

func completion(code int32) map[string]any {
	word, phrase := "Succeeded", "Succeeded"
	if code != 0 {
		word, phrase = "Failed", "ContainerUnrecognizedFailed"
	}
	return object{"code": code, "phrase": phrase, "type": object{"name": word, "attributes": []any{}}, "diagnostics": "exit of the job"}
}

func (j *Job) roleStatus(attempt, code int32) map[string]any {
	tasks := []any{}
	for i := range j.tasks() {
		tasks = append(tasks, j.Task(attempt, int32(i), j.TaskAttempt, code))
	}
	return object{"name": j.object(), "taskStatuses": tasks}
}

// Task returns the status of a task at the end of one of the task's attempts.
func (j *Job) Task(attempt, index, id, code int32) map[string]any {
	pod := fmt.Sprintf("%s-%s-%d", j.Key(), j.object(), index)
	begun := j.Begun(attempt)
	a := object{"id": id, "startTime": begun.Add(-time.Minute), "runTime": begun, "podName": pod, "podUID": uidOf(pod, fmt.Sprint(attempt, id)), "podNodeName": "old-7"}
	state := "AttemptRunning"
	if !j.Running {
		state = "Completed"
		a["completionTime"], a["completionStatus"] = begun.Add(j.ran()), completion(code)
	}
	return object{"index": index, "state": state, "startTime": begun.Add(-time.Minute), "transitionTime": begun,
		"retryPolicyStatus": object{"totalRetriedCount": id, "accountableRetriedCount": 0}, "attemptStatus": a}
}

func (j *Job) spec() map[string]any {
	limits := object{"cpu": 4, "memory": "8192Mi", "github.com/fuse": 1}
	annotations := object{"rest-server/port-scheduling-spec": "{}"}
	if j.HiveD != "" {
		limits["hivedscheduler.microsoft.com/pod-scheduling-enable"] = 1
		annotations["hivedscheduler.microsoft.com/pod-scheduling-spec"] = fmt.Sprintf("virtualCluster: %s\npriority: 10\nleafCellType: %s\nleafCellNumber: %d\naffinityGroup: null\n", j.VC, j.HiveD, j.GPUs)
	} else if j.GPUs > 0 {
		limits["nvidia.com/gpu"] = j.GPUs
	}
	pod := object{"metadata": object{"annotations": annotations}, "spec": object{
		"privileged": false, "restartPolicy": "Never", "hostNetwork": true,
		"initContainers": []any{object{"name": "init", "image": "runtime", "env": []any{object{"name": "USER_CMD", "value": "echo COMMAND-SECRET"}}}},
		"containers":     []any{object{"name": "app", "image": "image", "resources": object{"limits": limits}}}}}
	return object{"executionType": "Start", "retryPolicy": object{"fancyRetryPolicy": true, "maxRetryCount": 0},
		"taskRoles": []any{object{"name": j.object(), "taskNumber": j.tasks(), "task": object{"retryPolicy": object{}, "podGracefulDeletionTimeoutSec": 600, "pod": pod}}}}
}

func (j *Job) config() string {
	if j.Config != "" {
		return j.Config
	}
	return fmt.Sprintf("protocolVersion: 2\nname: %s\ntype: job\nsecrets: \"******\"\ntaskRoles:\n  %s:\n    instances: %d\n    commands: [nvidia-smi]\n", j.Name, j.role(), j.tasks())
}

// Add adds the rows of a job, including the rows of its earlier attempts.
func (d *Database) Add(j Job) {
	d.t.Helper()
	last := j.Snapshot(j.Attempt, j.Code)
	state := last["status"].(object)["state"]
	d.Exec(`INSERT INTO frameworks (name, "jobName", "userName", "jobConfig", "virtualCluster", "jobPriority", "submissionTime", "subState", snapshot, "configSecretDef", "updatedAt")
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $7)`, j.Key(), j.Name, j.User, j.config(), j.VC, j.Priority, j.Submitted, state, text(last), `{"data":{"secrets.yaml":"COMMAND-SECRET"}}`)
	for attempt := range j.Attempt {
		d.Exec(`INSERT INTO framework_history (uid, "frameworkName", "attemptIndex", "historyType", snapshot, "updatedAt") VALUES ($1, $2, $3, 'retry', $4, $5)`,
			uidOf("attempt", j.Key(), fmt.Sprint(attempt)), j.Key(), attempt, text(j.Snapshot(attempt, 255)), j.Submitted)
	}
}

// AddTask adds the row of a task's attempt that was followed by another attempt.
func (d *Database) AddTask(j Job, attempt, index, id, code int32) {
	d.t.Helper()
	d.Exec(`INSERT INTO task_history (uid, "frameworkName", "attemptIndex", "taskroleName", "taskIndex", "taskUid", "taskAttemptIndex", snapshot, "updatedAt") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		uidOf("task", j.Key(), fmt.Sprint(attempt, index, id)), j.Key(), attempt, j.object(), index, uidOf("task", j.Key(), fmt.Sprint(attempt, index)), id,
		text(object{"kind": "Task", "metadata": object{}, "status": j.Task(attempt, index, id, code)}), j.Submitted)
}

// AddEvent adds an event of Kubernetes about a pod of the job.
func (d *Database) AddEvent(j Job, reason string, at time.Time) {
	d.t.Helper()
	d.Exec(`INSERT INTO framework_events (uid, "frameworkName", "taskName", type, reason, message, "lastTimestamp", count, "sourceComponent", "updatedAt") VALUES ($1, $2, $3, 'Warning', $4, $5, $6, 3, 'kubelet', $6)`,
		uidOf("event", j.Key(), reason), j.Key(), v1.PodName(j.Key(), j.object(), 0), reason, reason+" of a pod", at)
}

// AddTag adds a tag to the job.
func (d *Database) AddTag(j Job, tag string) {
	d.t.Helper()
	d.Exec(`INSERT INTO tags (uid, "frameworkName", name, "updatedAt") VALUES ($1, $2, $3, $4)`, uidOf("tag", j.Key(), tag), j.Key(), tag, j.Submitted)
}

// SetSnapshot replaces the stored object of the job.
func (d *Database) SetSnapshot(j Job, snapshot string) {
	d.t.Helper()
	d.Exec(`UPDATE frameworks SET snapshot = $2 WHERE name = $1`, j.Key(), snapshot)
}

func text(o object) string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // it is a valid value of this function
	}
	return string(data)
}
