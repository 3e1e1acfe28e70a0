package v2

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// The paths of an attempt of a task, and of its logs. Role and index, or the UID of its pod, identify the attempt.
const (
	oneTask   = one + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"
	logsTask  = oneTask + "/{taskAttempt}/logs"
	logsPod   = one + "/attempts/{attempt}/pods/{pod}/logs"
	linkedLog = prefix + "/joblogs/{link}"
)

const textMedia = "text/plain; charset=utf-8"

func logRoutes() []server.Route {
	list, stream := []string{"NoJobError", "NoTaskLogError"}, server.Limit{Stream: true}
	return []server.Route{
		{Method: http.MethodGet, Path: logsTask, Aliases: []string{logsPod}, Rule: "job.logs", Serve: listLogs, In: reflect.TypeFor[logsIn](), Out: reflect.TypeFor[locations](),
			Summary: "Lists the logs of an attempt of a task, each with a link that works without a token for ten minutes", Errors: list},
		{Method: http.MethodGet, Path: logsTask + "/{log}", Aliases: []string{logsPod + "/{log}"}, Rule: "job.logs", Serve: readLog, In: reflect.TypeFor[logsIn](), Media: textMedia, Limit: stream,
			Summary: "Returns a log of an attempt of a task; with ?tail-mode=true its end, with ?follow=true also new lines", Errors: list},
		{Method: http.MethodGet, Path: linkedLog, Rule: "job.logs", Link: "link", Serve: readLinked, Media: textMedia, Limit: stream,
			Summary: "Returns the log of a link from a list of logs", Errors: list},
	}
}

type logsIn struct {
	Tail bool `query:"tail-mode"`
	// SDKTail has the same meaning as Tail, in the spelling of the JS SDK.
	SDKTail bool `query:"tailMode"`
	Follow  bool `query:"follow"`
}

// taskLogs returns the logs of the task attempt in the request's path.
func taskLogs(c *server.Call) (j *app.Job, all map[string]app.Log, in logsIn, err error) {
	if err := c.Decode(&in); err != nil {
		return nil, nil, in, err
	}
	in.Tail = in.Tail || in.SDKTail
	attempt, err := number("attempt", c.Request.PathValue("attempt"))
	if err != nil {
		return nil, nil, in, err
	}
	if j, err = find(c, "job.logs"); err != nil {
		return nil, nil, in, err
	}
	d, err := j.Detail(c.Context())
	if err != nil {
		return nil, nil, in, err
	}
	t, err := taskOf(c, d, attempt)
	if err != nil {
		return nil, nil, in, err
	}
	if t == nil {
		return nil, nil, in, app.NoJob(j.User(), j.Name())
	}
	all, err = j.TaskLogs(c.Context(), d, attempt, t)
	return j, all, in, err
}

// taskOf returns the task attempt in the request's path, or nil if the attempt doesn't exist.
func taskOf(c *server.Call, d *job.Detail, attempt int32) (*job.Task, error) {
	if uid := c.Request.PathValue("pod"); uid != "" {
		return d.TaskOfPod(attempt, uid), nil
	}
	n, err := nameTask(c)
	if err != nil {
		return nil, err
	}
	id, err := number("taskAttempt", c.Request.PathValue("taskAttempt"))
	if err != nil {
		return nil, err
	}
	list := d.TaskAttempts(n.attempt, n.role, n.index)
	if i := slices.IndexFunc(list, func(t job.Task) bool { return t.ID == id }); i >= 0 {
		return &list[i], nil
	}
	return nil, nil
}

// location holds the address of a log. The address is on the portal's host, as in OpenPAI.
type location struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
}

type locations struct {
	Locations []location `json:"locations"`
}

// front is the prefix of the API's paths on the portal's host.
const front = "/rest-server"

func listLogs(c *server.Call) error {
	j, all, in, err := taskLogs(c)
	if err != nil {
		return err
	}
	out := locations{}
	for _, name := range []string{"stdout", "stderr", "all"} {
		l, there := all[name]
		if !there {
			continue
		}
		l.Tail = in.Tail
		link, err := j.LogLink(c.Context(), l)
		if err != nil {
			return err
		}
		out.Locations = append(out.Locations, location{name, front + strings.Replace(linkedLog, "{link}", link.Reveal(), 1)})
	}
	c.Writer.Header().Set("Cache-Control", "no-store") // the links expire after a few minutes
	return c.JSON(out)
}

func readLog(c *server.Call) error {
	j, all, in, err := taskLogs(c)
	if err != nil {
		return err
	}
	l, there := all[c.Request.PathValue("log")]
	if !there {
		return app.NoLog("There is no such log: a task has stdout and all, and stderr where the machines keep the two apart.")
	}
	l.Tail = in.Tail
	return c.SendLog(j, &l, in.Follow)
}

func readLinked(c *server.Call) error {
	j, l, err := c.Actions.LinkedLog(c.Context())
	if err != nil {
		return err
	}
	return c.SendLog(j, l, false)
}
