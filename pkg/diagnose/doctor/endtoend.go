package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// EndToEnd is the group of checks that run jobs.
	EndToEnd = "end-to-end"
	// endUser is the owner of the doctor's jobs.
	endUser = "paictl-doctor"
	// jobWithin is the maximum time from the submission of a job to its end.
	jobWithin = 4 * time.Minute
	// defaultVC is the virtual cluster of jobs if the cluster doesn't have paictl's scheduler.
	defaultVC = "default"
)

func endToEndChecks() []*Check {
	return []*Check{
		{
			ID: "hello-jobs", Group: EndToEnd, Title: "A job runs in each virtual cluster", Needs: API, Limit: jobWithin + time.Minute, Ends: endWithin,
			Examines: "a job of one task without a GPU in each virtual cluster, from its submission to its end; then it is removed",
			Run:      helloJobs,
		},
		{
			ID: "gang-job", Group: EndToEnd, Title: "A gang runs on two machines", Needs: API, Limit: jobWithin + time.Minute, Ends: endWithin,
			Examines: "a job of two tasks that start together on two machines, and meet; then it is removed",
			Run:      gangJob,
		},
	}
}

type trial struct {
	vc, name string
	// machines contains the host names of machines that run one task each. If machines is empty, one task runs on any machine.
	machines []string
	// nodes contains the names of these machines' nodes.
	nodes []string
}

func (t *trial) tasks() int { return max(len(t.machines), 1) }

// facts returns the settings and resources for submitting jobs, and an image for the doctor's jobs. If a value is unknown, the findings contain the
// reason. facts first removes objects that an earlier doctor has left.
func (c *Cluster) facts(ctx context.Context) (*job.Facts, string, []Finding) {
	left, err := doctorLeft(ctx, c)
	if err != nil {
		return nil, "", []Finding{warning("", hint.Of(err), "could not be checked: %v", err)}
	}
	for _, f := range left {
		if err := f.Fix.do(ctx, c); err != nil {
			return nil, "", []Finding{warning(f.Where, f.Remedy, "remains of an earlier doctor could not be removed: %v", err)}
		}
	}
	facts, err := c.Jobs.Facts(ctx)
	if errors.Is(err, job.ErrNoConfiguration) {
		return nil, "", skip("this cluster doesn't run jobs: the job controller wasn't started")
	}
	if err != nil {
		return nil, "", []Finding{warning("", hint.Of(err), "could not be checked: %v", err)}
	}
	image := c.JobImage
	if image == "" {
		images, err := c.Jobs.Images(ctx)
		if err != nil {
			return nil, "", []Finding{warning("", hint.Of(err), "could not be checked: %v", err)}
		}
		if image = job.FirstImage(images); image == "" {
			return nil, "", skip("no image with a shell is on all machines: name one with --job-image")
		}
	}
	return facts, image, nil
}

func helloJobs(ctx context.Context, c *Cluster) ([]Finding, error) {
	facts, image, why := c.facts(ctx)
	if why != nil {
		return why, nil
	}
	vcs := sortedKeys(facts.Cluster.VirtualClusters)
	if len(vcs) == 0 {
		vcs = []string{defaultVC}
	}
	found := make([][]Finding, len(vcs))
	var wg sync.WaitGroup
	for i, vc := range vcs {
		wg.Go(func() {
			found[i] = c.try(ctx, facts, image, trial{vc: vc, name: fmt.Sprintf("hello-%d-%s", i+1, mark())})
		})
	}
	wg.Wait()
	return slices.Concat(found...), ctx.Err()
}

func gangJob(ctx context.Context, c *Cluster) ([]Finding, error) {
	facts, image, why := c.facts(ctx)
	if why != nil {
		return why, nil
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var able []*corev1.Node
	for i := range nodes {
		if isReady(&nodes[i]) && !nodes[i].Spec.Unschedulable && hasAll(nodes[i].Labels, facts.Cluster.NodeLabels) {
			able = append(able, &nodes[i])
		}
	}
	if len(able) < 2 {
		return skip("fewer than two machines accept jobs"), nil
	}
	busy, err := c.tasksOn(ctx)
	if err != nil {
		return nil, err
	}
	vc := defaultVC
	if all := sortedKeys(facts.Cluster.VirtualClusters); len(all) > 0 && !slices.Contains(all, vc) {
		vc = all[0]
	}
	// Choose other machines each time, so that all machines are tested in the long run. Prefer machines with fewer tasks, because they are more likely
	// to have enough room. Only the scheduler can determine the free room.
	rand.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] }) //nolint:gosec // a sample
	slices.SortStableFunc(able, func(a, b *corev1.Node) int { return busy[a.Name] - busy[b.Name] })
	t := trial{vc: vc, name: "gang-" + mark()}
	for _, n := range able[:2] {
		t.machines, t.nodes = append(t.machines, n.Labels[corev1.LabelHostname]), append(t.nodes, n.Name)
	}
	return c.try(ctx, facts, image, t), ctx.Err()
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// text returns the file of the job, with one task role for each task.
func (t *trial) text(image string) ([]byte, error) {
	roles, groups := map[string]any{}, map[string]any{}
	for i := range t.tasks() {
		// Each role is a separate affinity group. Otherwise the scheduler would search for one machine for both roles. Roles in separate groups also wait
		// for each other.
		groups[role(i)] = map[string]any{"affinityGroupName": role(i)}
		roles[role(i)] = map[string]any{
			"instances": 1, "dockerImage": "image", "completion": map[string]any{"minFailedInstances": 1, "minSucceededInstances": -1},
			"resourcePerInstance": map[string]any{"cpu": 0.1, "memoryMB": 64, "gpu": 0},
			"commands":            []any{"echo hello from the doctor"},
		}
	}
	file := map[string]any{
		"protocolVersion": 2, "name": t.name, "type": "job",
		"prerequisites": []any{map[string]any{"name": "image", "type": "dockerimage", "uri": image}},
		"defaults":      map[string]any{"virtualCluster": t.vc},
		"taskRoles":     roles,
	}
	if len(t.machines) > 1 {
		file["extras"] = map[string]any{"hivedScheduler": map[string]any{"taskRoles": groups}}
	}
	return yaml.Marshal(file)
}

func role(i int) string { return fmt.Sprintf("task%d", i) }

// try runs a job until it has finished, removes it, and returns the findings.
func (c *Cluster) try(ctx context.Context, facts *job.Facts, image string, t trial) (out []Finding) {
	ctx, cancel := context.WithTimeout(ctx, jobWithin)
	defer cancel()
	if f := c.noVacancy(ctx, &t); f != nil {
		return []Finding{*f}
	}
	text, err := t.text(image)
	if err != nil {
		return []Finding{warning(t.vc, "", "could not be checked: %v", err)}
	}
	parsed, mistakes := protocol.Parse(t.name+".yaml", text)
	if errs := mistakes.Errors(); len(errs) > 0 {
		return []Finding{warning(t.vc, errs[0].Remedy, "the doctor's job is refused: %s", errs[0].Message)}
	}
	objects, mistakes := render.Render(parsed, render.Options{User: endUser, Namespace: c.Jobs.Namespace, Cluster: facts.Cluster, Now: c.Now()})
	if errs := mistakes.Errors(); len(errs) > 0 {
		return []Finding{problem(t.vc, errs[0].Remedy, "the doctor's job is refused: %s", errs[0].Message)}
	}
	c.dress(objects, t)
	// Remove the job even if the submission was interrupted.
	defer func() {
		if err := c.forget(context.WithoutCancel(ctx), objects.Framework.Name); err != nil {
			out = append(out, warning(t.vc, "paictl job delete --user "+endUser+" "+t.name, "the doctor's job could not be removed: %v", err))
		}
	}()
	if _, err := c.Jobs.Submit(ctx, objects, job.SubmitOptions{}); err != nil {
		return []Finding{problem(t.vc, hint.Of(err), "a job can't be submitted").seen(err.Error())}
	}
	return c.judge(ctx, t)
}

// dress adds the doctor's annotation to the job, and assigns each role to its machine.
func (c *Cluster) dress(o *render.Objects, t trial) {
	o.Framework.Annotations[annotationOwner] = c.owner
	for i, machine := range t.machines {
		for k := range o.Framework.Spec.TaskRoles {
			r := &o.Framework.Spec.TaskRoles[k]
			if r.Name != role(i) {
				continue
			}
			pod := &r.Task.Pod.Spec
			selector := map[string]string{corev1.LabelHostname: machine}
			maps.Copy(selector, pod.NodeSelector)
			pod.NodeSelector = selector
		}
	}
}

func (c *Cluster) judge(ctx context.Context, t trial) []Finding {
	j, err := c.Jobs.Resolve(ctx, endUser, t.name)
	if err != nil {
		return []Finding{problem(t.vc, hint.Of(err), "the job was submitted, but is missing").seen(err.Error())}
	}
	var last *job.Detail
	nodes := map[string]bool{}
	var wait waiting
	var full *Finding
	err = c.Jobs.Follow(ctx, j, func(d *job.Detail) bool {
		last = d
		for _, task := range d.Tasks {
			if task.Node != "" {
				nodes[task.Node] = true
			}
		}
		full = wait.full(ctx, c, &t, d)
		return full == nil && !job.Phase(d.State).Done()
	}, func(error) {})
	if full != nil {
		return []Finding{*full}
	}
	state := "unknown"
	if last != nil {
		state = last.State
	}
	if err == nil && job.Phase(state) == job.Succeeded {
		if len(t.machines) > 1 {
			return []Finding{note(t.vc, "it ran on %s", strings.Join(sortedKeys(nodes), " and "))}
		}
		return nil
	}
	f := problem(t.vc, "submit such a job and ask why: paictl job submit examples/jobs/hello.yaml, then paictl job why hello", "a job of %s did not succeed within %s: it is %s", plural.Of(t.tasks(), "task"), jobWithin, state)
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiLimit)
	defer cancel()
	if why, err := c.Jobs.Why(asking, j); err == nil {
		f = f.seen(why.Sentence)
		if len(why.Remedy) > 0 {
			f.Remedy = why.Remedy[0]
		}
	}
	if job.Phase(state) == job.Queued || job.Phase(state) == job.Waiting {
		f.Verdict = Warning // the cluster may be full
	}
	return []Finding{f}
}

// forget deletes a job and its record in the history.
func (c *Cluster) forget(ctx context.Context, object string) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	f, err := c.Jobs.Frameworks.Get(ctx, object)
	if err == nil {
		err = c.Jobs.Frameworks.Delete(ctx, object, f.UID)
	}
	if err = gone(err); err != nil {
		return err
	}
	// The job controller adds the job to the history when it deletes the job.
	for {
		if _, err := c.Jobs.Frameworks.Get(ctx, object); err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil // the controller continues by itself
		case <-time.After(time.Second):
		}
	}
	_, _ = c.Jobs.History.Delete(ctx, object) // if the record stays, it does no harm
	return nil
}
