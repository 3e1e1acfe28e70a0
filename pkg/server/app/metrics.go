package app

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/rules"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/status"
)

// usualSpan is the default time range of a report about a machine or a virtual cluster.
const usualSpan = 6 * time.Hour

// Metrics returns the resource usage of the job's tasks over time. task selects one task, as ROLE[INDEX] or ROLE/INDEX. "" selects all tasks. The
// report covers only the time of the job, because the pods of a later job with the same name have the same names.
func (j *Job) Metrics(ctx context.Context, task string, w metrics.Window) (*metrics.Report, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	roles, index, err := j.tasksOf(task)
	if err != nil {
		return nil, err
	}
	d, err := j.actions.app.Jobs.Detail(ctx, j.job)
	if err != nil {
		return nil, err
	}
	begin, end := d.Submitted, j.actions.app.now()
	if n := len(d.Attempts); n > 0 && d.Attempts[n-1].ID == 0 {
		begin = d.Attempts[n-1].Started // before that, the job waited
	}
	if d.Completed != nil {
		end = *d.Completed
	}
	r, err := w.Within(begin, end, metrics.MaxSpan)
	if err != nil {
		return nil, err
	}
	return j.actions.app.Metrics.Read(ctx, metrics.OfJob(j.job.Object, roles, index).Since(begin), r)
}

// tasksOf returns the role and the index of a task. For the task "", it returns all roles and the index -1.
func (j *Job) tasksOf(task string) (roles []metrics.Role, index int32, err error) {
	var names []string
	for _, r := range j.job.Roles {
		roles, names = append(roles, metrics.Role{Name: r.Name, Object: r.Object}), append(names, r.Name)
	}
	if task == "" {
		return roles, -1, nil
	}
	role, index, ok := job.ParseTask(task)
	if !ok {
		return nil, 0, wire.Bad(`"task" is ` + wire.Shown(task) + ": write ROLE[INDEX] or ROLE/INDEX, such as worker[0]")
	}
	at := slices.IndexFunc(roles, func(r metrics.Role) bool { return r.Name == role })
	if at < 0 {
		return nil, 0, wire.Bad(`"task": the job has no task role ` + wire.Shown(role) + "; it has: " + strings.Join(names, ", "))
	}
	return roles[at : at+1], index, nil
}

// MachineMetrics returns the resource usage of a machine over time. It includes the file systems only for callers who may read the whole state of the
// cluster.
func (d *Actions) MachineMetrics(ctx context.Context, name string, w metrics.Window) (*metrics.Report, error) {
	c, err := d.Status(ctx, []string{status.PartMachines})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Machines, func(m status.Machine) bool { return m.Name == name }) {
		return nil, &wire.Error{Status: http.StatusNotFound, Code: codeNoMachine, Message: "the cluster has no machine " + wire.Shown(name), Remedy: "see the names of machines with: paictl status --once"}
	}
	return d.metrics(ctx, metrics.OfMachine(name, rules.Class("kube.read", &d.caller.Subject) == nil), w)
}

// VirtualClusterMetrics returns the GPUs and the queue of a virtual cluster over time. Only callers who may use the virtual cluster get the report.
func (d *Actions) VirtualClusterMetrics(ctx context.Context, name string, w metrics.Window) (*metrics.Report, error) {
	all, _, err := d.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all.Items, func(v schedulerapi.VirtualCluster) bool { return v.Name == name }) {
		return nil, NoVC(name)
	}
	return d.metrics(ctx, metrics.OfVC(name), w)
}

func (d *Actions) metrics(ctx context.Context, s *metrics.Subject, w metrics.Window) (*metrics.Report, error) {
	r, err := w.Within(time.Time{}, d.app.now(), usualSpan)
	if err != nil {
		return nil, err
	}
	return d.app.Metrics.Read(ctx, s, r)
}
