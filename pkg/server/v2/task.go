package v2

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// container holds the fields of one attempt of a task.
type container struct {
	AttemptID int32             `json:"attemptId"`
	Attempt   string            `json:"attemptState"`
	Created   *int64            `json:"currentAttemptCreatedTime"`
	Launched  *int64            `json:"currentAttemptLaunchedTime"`
	Completed *int64            `json:"currentAttemptCompletedTime"`
	ID        string            `json:"containerId"`
	IP        string            `json:"containerIp"`
	Node      string            `json:"containerNodeName"`
	Ports     map[string]string `json:"containerPorts"`
	// GPUs is always null. Clients read it as the bit mask of the task's GPUs in early versions of OpenPAI. This server doesn't have the mask.
	GPUs        *int        `json:"containerGpus"`
	Log         string      `json:"containerLog"`
	ExitCode    *int32      `json:"containerExitCode"`
	ExitSpec    *rules.Rule `json:"containerExitSpec"`
	Diagnostics *string     `json:"containerExitDiagnostics"`
}

// taskStatus holds the fields of a task that don't depend on the attempt.
type taskStatus struct {
	Index       int32  `json:"taskIndex"`
	UID         string `json:"taskUid"`
	State       string `json:"taskState"`
	Retries     int32  `json:"retries"`
	Accountable int32  `json:"accountableRetries"`
	Created     *int64 `json:"createdTime"`
	Launched    *int64 `json:"launchedTime"`
	Completed   *int64 `json:"completedTime"`
	Phase       string `json:"phase"`
}

// task is a task together with its latest attempt.
type task struct {
	taskStatus
	container
}

func newTask(d *job.Detail, attempt int32, t *job.Task, meaning meaning) task {
	return task{newTaskStatus(t), newContainer(d, attempt, t, meaning)}
}

func newTaskStatus(t *job.Task) taskStatus {
	out := taskStatus{Index: t.Index, UID: t.PodUID, State: word(t.Phase), Retries: t.Retries, Accountable: t.Accountable,
		Created: milliseconds(&t.Begun), Launched: milliseconds(t.Ran), Completed: milliseconds(t.Ended), Phase: string(t.Phase)}
	if out.Launched == nil {
		out.Launched = out.Completed
	}
	return out
}

func newContainer(d *job.Detail, attempt int32, t *job.Task, meaning meaning) container {
	out := container{AttemptID: t.ID, Attempt: word(t.Phase), Created: milliseconds(&t.Started), Launched: milliseconds(t.Run), Completed: milliseconds(t.Completed),
		ID: t.PodUID, IP: t.IP, Node: t.Node, Ports: map[string]string{}, Log: logsOf(d, attempt, t)}
	for label, list := range d.Ports(t) {
		text := make([]string, len(list))
		for i, n := range list {
			text[i] = strconv.Itoa(n)
		}
		out.Ports[label] = strings.Join(text, ",")
	}
	if code, ok := t.Code(); ok {
		out.ExitCode, out.ExitSpec, out.Diagnostics = &code, meaning(code), &t.Completion.Diagnostics
		out.Attempt = word(job.EndPhase(code)) // the attempt of a task that is retried has ended as well
	}
	if out.Launched == nil {
		out.Launched = out.Completed
	}
	return out
}

// logsOf returns the path of the list of logs of a task's attempt. Clients prepend the address of the server.
func logsOf(d *job.Detail, attempt int32, t *job.Task) string {
	return fmt.Sprintf("%s/jobs/%s~%s/attempts/%d/taskRoles/%s/taskIndex/%d/attempts/%d/logs", prefix, d.User, d.Name, attempt, t.Role, t.Index, t.ID)
}

// taskHistory is a task with all of its attempts, the latest first.
type taskHistory struct {
	Username string `json:"username"`
	JobName  string `json:"jobName"`
	Attempt  int32  `json:"jobAttemptId"`
	Role     string `json:"taskRoleName"`
	taskStatus
	Attempts []container `json:"attempts"`
}

// named identifies the task in a request's path.
type named struct {
	attempt int32
	role    string
	index   int32
}

func nameTask(c *server.Call) (n named, err error) {
	if n.attempt, err = number("attempt", c.Request.PathValue("attempt")); err != nil {
		return n, err
	}
	n.role = c.Request.PathValue("role")
	n.index, err = number("taskIndex", c.Request.PathValue("index"))
	return n, err
}

func getTask(c *server.Call) error {
	n, err := nameTask(c)
	if err != nil {
		return err
	}
	j, d, err := read(c)
	if err != nil {
		return err
	}
	list := d.TaskAttempts(n.attempt, n.role, n.index)
	if len(list) == 0 {
		return app.NoJob(j.User(), j.Name())
	}
	meaning := exits(c, j)
	out := taskHistory{Username: d.User, JobName: d.Name, Attempt: n.attempt, Role: list[0].Role, taskStatus: newTaskStatus(&list[0])}
	for i := range list {
		out.Attempts = append(out.Attempts, newContainer(d, n.attempt, &list[i], meaning))
	}
	return c.JSON(out)
}
