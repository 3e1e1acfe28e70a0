package job

import (
	"slices"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Job is a live job with a Framework, or a job that only the history has. It can be written as JSON. A Job that was read from JSON has all data that
// commands show, but the methods of Client accept only a Job that a Client found.
type Job struct {
	User   string `json:"user"`
	Name   string `json:"name"`
	Object string `json:"object"` // name of the Framework
	UID    string `json:"uid,omitempty"`
	// Live reports whether the job's Framework exists.
	Live bool `json:"live"`
	// State is the job's state, ignoring its pods and the queue.
	State Phase `json:"state"`
	// StopAsked reports whether a user requested that the job stops.
	StopAsked bool `json:"stopAsked,omitempty"`
	// Roles are in the order of the job file. The roles of a removed job come from the tasks in the history.
	Roles []Role `json:"roles"`
	// Config is the job file with masked secrets, or "" if the job was submitted without a job file.
	Config string `json:"config,omitempty"`

	framework *v1.Framework // nil if it is gone
	// archived is nil if the Framework exists.
	archived *api.JobDetail
	parsed   *protocol.Job // see file
}

// Of returns the Job that a Framework describes.
func Of(f *v1.Framework) *Job {
	row := api.Summary(f)
	return &Job{User: row.User, Name: row.Name, Object: f.Name, UID: string(f.UID), Live: true, State: StateOf(f, nil, nil).Phase,
		StopAsked: f.Spec.ExecutionType == v1.ExecutionStop, Roles: rolesOf(f), Config: f.Annotations[v1.AnnotationConfig], framework: f}
}

// Past returns a job that only the history has.
func Past(a *api.JobDetail) *Job {
	j := &Job{User: a.User, Name: a.Name, Object: a.Framework, UID: a.UID, Roles: []Role{}, Config: a.Config, archived: a}
	j.State = endedPhase(j)
	for _, attempt := range a.Attempts {
		for i := range attempt.Tasks {
			t := &attempt.Tasks[i]
			at := slices.IndexFunc(j.Roles, func(r Role) bool { return r.Object == t.RoleObject })
			if at < 0 {
				at = len(j.Roles)
				j.Roles = append(j.Roles, Role{Name: terminal.Line(t.Role), Object: t.RoleObject, written: t.Role})
			}
			j.Roles[at].Tasks = max(j.Roles[at].Tasks, int(t.Index)+1)
		}
	}
	j.inOrder(j.Roles)
	return j
}

// Title returns the displayed name of a job: user/name.
func (j *Job) Title() string { return j.User + "/" + j.Name }

// Stopping reports whether a stop was requested and the job hasn't finished.
func (j *Job) Stopping() bool { return j.Live && j.StopAsked && !j.State.Done() }

// Ended reports whether a job has finished.
func (j *Job) Ended() bool { return !j.Live || j.State.Done() }
