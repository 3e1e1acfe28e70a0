package v2

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// The paths of a job. {job} is USER~NAME.
const (
	one    = prefix + "/jobs/{job}"
	oneOld = old + "/jobs/{job}"
	ofUser = old + "/user/{user}/jobs"
)

func jobRoutes() []server.Route {
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/jobs", Aliases: []string{old + "/jobs", ofUser}, Rule: "jobs.list", Serve: list, In: reflect.TypeFor[listIn](), Out: reflect.TypeFor[[]row](), Or: []reflect.Type{reflect.TypeFor[total]()},
			Summary: "Lists jobs: an array, or with ?withTotalCount=true an object with their number", Errors: []string{wire.CodeParameters}},
		{Method: http.MethodPost, Path: prefix + "/jobs", Aliases: []string{old + "/jobs"}, Rule: "job.submit", Serve: submit, In: reflect.TypeFor[submitIn](), Out: reflect.TypeFor[message](), Status: http.StatusAccepted,
			Summary: "Submits a job file", Limit: server.Limit{Body: textBytes, Submit: true, Each: submissions, Time: time.Minute}, Errors: []string{"InvalidProtocolError", "ConflictJobError", "NoJobError", "NoCodeError", "NoEnoughQuotaError", wire.CodeKey}},
		{Method: http.MethodGet, Path: one, Aliases: []string{oneOld, ofUser + "/{job}"}, Rule: "job.read", Serve: get, Out: reflect.TypeFor[detail](), Summary: "Returns a job, with its attempts and tasks", Errors: []string{"NoJobError"}},
		{Method: http.MethodGet, Path: one + "/attempts/{attempt}", Rule: "job.read", Serve: get, Out: reflect.TypeFor[detail](), Summary: "Returns an attempt of a job, with its tasks", Errors: []string{"NoJobError"}},
		{Method: http.MethodGet, Path: one + "/config", Aliases: []string{ofUser + "/{job}/config"}, Rule: "job.config", Serve: config,
			Summary: "Returns the job file with masked secrets, as JSON; with ?format=yaml, as it was submitted", Media: "text/yaml; charset=utf-8", Errors: []string{"NoJobError", "NoJobConfigError"}},
		{Method: http.MethodPut, Path: one + "/executionType", Aliases: []string{ofUser + "/{job}/executionType"}, Rule: "job.stop", Serve: execute, In: reflect.TypeFor[executeIn](), Out: reflect.TypeFor[message](), Status: http.StatusAccepted,
			Summary: "Stops a job", Errors: []string{"NoJobError", "ConflictJobError"}},
		{Method: http.MethodGet, Path: one + "/ssh", Aliases: []string{ofUser + "/{job}/ssh", oneOld + "/ssh"}, Rule: "job.read", Serve: ssh, Out: reflect.TypeFor[sshInfo](),
			Summary: "Returns the SSH addresses of a job's running tasks, if the job file has the plugin ssh", Errors: []string{"NoJobError", "NoJobSshInfoError"}},
		{Method: http.MethodGet, Path: oneTask, Rule: "job.read", Serve: getTask, Out: reflect.TypeFor[taskHistory](), Summary: "Returns a task with all its attempts, latest first", Errors: []string{"NoJobError"}},
		{Method: http.MethodGet, Path: one + "/events", Rule: "job.read", Serve: events, In: reflect.TypeFor[eventsIn](), Out: reflect.TypeFor[eventList](), Summary: "Lists the Kubernetes events of a job, latest first", Errors: []string{"NoJobError"}},
		server.JSON(http.MethodGet, one+"/pods", "job.read", "Lists the existing pods of a job's tasks", pods, server.Errors("NoJobError")),
		server.JSON(http.MethodGet, one+"/why", "job.read", "Explains why a job waits, with its position in the queue, or how it ended", why, server.Errors("NoJobError")),
		{Method: http.MethodDelete, Path: one, Aliases: []string{ofUser + "/{job}"}, Rule: "job.delete", Serve: remove, In: reflect.TypeFor[removeIn](), Out: reflect.TypeFor[message](), Accepts: true,
			Summary: "Deletes a job; with ?history=true, removes its name from the history; 202 means that its tasks haven't ended yet", Errors: []string{"NoJobError"}},
		{Method: http.MethodPost, Path: ofUser, Rule: "job.submit", Serve: submitOld, Out: reflect.TypeFor[message](), Summary: "Returns 410: job files of version 1 are no longer accepted", Errors: []string{"GoneError"}},
	}
}

// find returns the job of the request's path. The path contains USER~NAME, or a user and a name.
func find(c *server.Call, rule string) (*app.Job, error) {
	user, name := c.Request.PathValue("user"), c.Request.PathValue("job")
	if user == "" {
		user, name, _ = strings.Cut(name, "~")
	}
	return c.Actions.Job(c.Context(), rule, user, name)
}

type listIn struct {
	Users      []string `query:"username"`
	VCs        []string `query:"vc"`
	States     []string `query:"state"`
	Keyword    string   `query:"keyword"`
	Tags       []string `query:"tagsContain"`
	NoTags     []string `query:"tagsNotContain"`
	Priorities []string `query:"jobPriority"`
	Offset     int      `query:"offset"`
	Limit      *int     `query:"limit"`
	Order      string   `query:"order"`
	Total      string   `query:"withTotalCount"`
	User       string   `path:"user"`
}

const (
	defaultRows = 5000
	maxRows     = 50000
	// leastRows is the minimum number of counted rows for a list. The server sorts all live jobs even for a short list.
	leastRows = 1000
)

// orders maps the fields by which clients can order lists. Other fields are ignored, because some clients send unsupported fields.
var orders = map[string]string{
	"jobName": fapi.OrderName, "submissionTime": fapi.OrderSubmitted, "username": fapi.OrderUser, "vc": fapi.OrderVC, "retries": fapi.OrderRetries,
	"totalTaskNumber": fapi.OrderTasks, "totalGpuNumber": fapi.OrderGPUs, "state": fapi.OrderState, "completionTime": fapi.OrderCompleted, "jobPriority": fapi.OrderPriority,
}

// filter converts the query of a list to a filter.
func (in *listIn) filter() (listing.Filter, error) {
	f := listing.Filter{Users: in.Users, VirtualClusters: in.VCs, Keyword: in.Keyword, TagsAny: in.Tags, TagsNone: in.NoTags, Priorities: in.Priorities,
		Offset: in.Offset, Limit: defaultRows, Order: fapi.OrderSubmitted, Descending: true, Count: in.Total == "true"}
	if in.User != "" {
		f.User = in.User
	}
	if in.Limit != nil {
		f.Limit = *in.Limit
	}
	if f.Limit > maxRows || f.Limit < 0 || f.Offset < 0 {
		return f, wire.Bad(fmt.Sprintf(`"limit" and "offset" must not be negative, and "limit" at most %d`, maxRows))
	}
	if field, way, ok := strings.Cut(in.Order, ","); ok && orders[field] != "" && (way == "ASC" || way == "DESC") {
		f.Order, f.Descending = orders[field], way == "DESC"
	}
	for _, word := range in.States {
		phases := phasesOf(word)
		if len(phases) == 0 {
			continue
		}
		f.Phases = append(f.Phases, phases...)
	}
	if len(in.States) > 0 && len(f.Phases) == 0 {
		f.Limit, f.Phases = 0, []listing.Phase{"none"} // no job has such a state
	}
	return f, nil
}

// total is a list of jobs with the total number of jobs that the filter selects.
type total struct {
	Total int   `json:"totalCount"`
	Data  []row `json:"data"`
}

func list(c *server.Call) error {
	in := listIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	f, err := in.filter()
	if err != nil {
		return err
	}
	if err := c.Rows(max(f.Limit, leastRows)); err != nil {
		return err
	}
	page, err := c.Actions.Ordered(c.Context(), f)
	if err != nil {
		return err
	}
	rows := make([]row, len(page.Items))
	for i := range page.Items {
		rows[i] = newRow(&page.Items[i])
	}
	if page.Note != "" {
		c.Warn(page.Note)
	}
	if !f.Count {
		return c.JSON(rows)
	}
	c.Writer.Header().Set("X-Total-Count", strconv.Itoa(page.Total))
	return c.JSON(total{page.Total, rows})
}

type submitIn struct {
	Text   string `body:"text"`
	DryRun bool   `query:"dryRun"`
	Key    string `header:"Idempotency-Key"`
}

func submit(c *server.Call) error {
	in := submitIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	p, err := c.Actions.Prepare(c.Context(), app.Request{Text: in.Text})
	if err != nil {
		return err
	}
	if _, err := p.Submit(c.Context(), app.SubmitOptions{DryRun: in.DryRun, Key: in.Key}); err != nil {
		return err
	}
	out := message{Status: http.StatusAccepted, Message: fmt.Sprintf("Update job %s for user %s successfully.", p.Summary().Name, p.Summary().User)}
	for _, f := range p.Findings {
		out.Warnings = append(out.Warnings, f.String())
	}
	return c.JSON(out)
}

type executeIn struct {
	Body struct {
		Value string `json:"value"`
	} `body:"json"`
}

func execute(c *server.Call) error {
	in := executeIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	j, err := find(c, "job.stop")
	if err != nil {
		return err
	}
	switch in.Body.Value {
	case "STOP":
		if _, err := j.Stop(c.Context()); err != nil {
			return err
		}
		return c.JSON(message{Status: http.StatusAccepted, Message: fmt.Sprintf("Execute job %s~%s successfully.", j.User(), j.Name())})
	case "START":
		return &wire.Error{Status: http.StatusConflict, Code: "ConflictJobError", Message: "A job that was stopped can't be started again: submit it under another name."}
	}
	return wire.Bad(`"value" must be one of [START, STOP]`)
}
