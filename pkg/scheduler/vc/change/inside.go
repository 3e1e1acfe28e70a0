package change

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// inside lists the jobs in virtual clusters that would be deleted or would lose all cells. It describes the resources that each
// job holds or waits for.
type inside map[string]map[string]string // by virtual cluster and job

func (in inside) add(vc, job, what string) {
	if in[vc] == nil {
		in[vc] = map[string]string{}
	}
	if have := in[vc][job]; have == "" || have > what { // if the job has several gangs, prefer a running gang
		in[vc][job] = what
	}
}

// inside finds these jobs in the scheduler's validation. If no scheduler responds, it finds the pods in virtual clusters that
// would be deleted.
func (c *Changer) inside(ctx context.Context, o *vc.ChangeSet, out *vc.Outcome) (inside, error) {
	in := inside{}
	if out.Effect != nil && out.Note == "" {
		for i := range out.Effect.Changes {
			if one := &out.Effect.Changes[i]; one.Effect != api.Restored && keepsNothing(out.Effect, one.VC) {
				in.add(one.VC, job.JobOfGroup(one.Group), doing(one))
			}
		}
		return in, nil
	}
	for i := range o.Changes {
		if r := &o.Changes[i]; r.Delete {
			if err := c.podsInside(ctx, r.Name, in); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}

// keepsNothing reports whether a virtual cluster would be deleted or would lose all its cells.
func keepsNothing(v *api.Validation, name string) bool {
	return slices.ContainsFunc(v.VirtualClusters, func(c api.ChangedVirtualCluster) bool {
		return c.Name == name && c.Before != nil && (c.After == nil || c.After.Guaranteed == 0 && c.After.CPUCells() == 0)
	})
}

func doing(c *api.Change) string {
	if c.Effect == api.Refused {
		return "waits for " + c.Held()
	}
	return "runs on " + c.Held()
}

// podsInside finds the unfinished pods with the label of a virtual cluster, and adds their jobs to out.
func (c *Changer) podsInside(ctx context.Context, vc string, out inside) error {
	list, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelVC + "=" + vc})
	if err != nil {
		return hint.Wrap(fmt.Errorf("look for jobs in the virtual cluster %s: %w", vc, err),
			"try again, as an administrator who may list pods; --force changes the virtual clusters without this check")
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		name := p.Namespace + "/" + p.Name
		if r, err := annotation.ParseRequest(p.Annotations[annotation.SpecKey], name); err == nil {
			name = job.JobOfGroup(r.Gang)
		}
		what := "waits"
		if p.Spec.NodeName != "" {
			what = "runs"
		}
		out.add(vc, name, what)
	}
	return nil
}

// remedyInside is the remedy for a change that is rejected because of such jobs.
const remedyInside = "stop them (paictl job stop), or submit them to another virtual cluster (paictl job clone); with --force running jobs continue without a guarantee, and waiting jobs never start"

// maxJobsNamed is the maximum number of jobs that an error lists per virtual cluster.
const maxJobsNamed = 8

// refusal explains why jobs would have no virtual cluster after the change. It returns "" if no such jobs exist.
func (in inside) refusal() string {
	var parts []string
	for _, vc := range slices.Sorted(maps.Keys(in)) {
		var jobs []string
		for _, name := range slices.SortedFunc(maps.Keys(in[vc]), func(a, b string) int { return cmp.Or(cmp.Compare(in[vc][a], in[vc][b]), cmp.Compare(a, b)) }) {
			jobs = append(jobs, terminal.Line(name)+" "+in[vc][name])
		}
		if n := len(jobs) - maxJobsNamed; n > 0 {
			jobs = append(jobs[:maxJobsNamed], fmt.Sprintf("and %d more", n))
		}
		parts = append(parts, fmt.Sprintf("%s has %s inside: %s", vc, plural.Of(len(in[vc]), "job"), strings.Join(jobs, ", ")))
	}
	return strings.Join(parts, "; ")
}
