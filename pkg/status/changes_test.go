package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

func texts(was, is *status.Cluster) []string {
	out := []string{}
	changes := status.Changes(was, is)
	for i := range changes {
		out = append(out, changes[i].Text())
	}
	return out
}

// other replaces a job of a model with a changed copy, as a follower does.
func other(c *status.Cluster, at int, change func(*status.Job)) {
	j := *c.Jobs[at]
	change(&j)
	c.Jobs[at] = &j
}

func TestEachChangeIsALine(t *testing.T) {
	queued := func(c *status.Cluster) int {
		for i, j := range c.Jobs {
			if j.State == string(job.Queued) {
				return i
			}
		}
		return -1
	}
	for name, c := range map[string]struct {
		change func(*status.Cluster)
		want   []string
	}{
		"nothing": {func(*status.Cluster) {}, []string{}},
		"a job starts": {func(c *status.Cluster) {
			other(c, queued(c), func(j *status.Job) { j.State, j.Position = string(job.Running), 0 })
		},
			[]string{"job grace/prepare-bert-3 queued (1st) -> running"}},
		"a job fails": {func(c *status.Cluster) {
			other(c, 0, func(j *status.Job) { j.State, j.Why = string(job.Failed), "ContainerOOMKilled, code 137" })
		},
			[]string{"job grace/serve-vit-0 running -> failed: ContainerOOMKilled, code 137"}},
		"a place in the queue is none": {func(c *status.Cluster) { other(c, queued(c), func(j *status.Job) { j.Position = 7 }) }, []string{}},
		"a job comes": {func(c *status.Cluster) {
			j := *c.Jobs[0]
			j.Name, j.UID, j.State, j.Submitted = "new", "n", string(job.Waiting), c.At
			c.Jobs = append([]*status.Job{&j}, c.Jobs...)
		}, []string{"job grace/new -> waiting"}},
		"a job goes": {func(c *status.Cluster) { c.Jobs = c.Jobs[1:] }, []string{"job grace/serve-vit-0 running -> gone"}},
		"a machine": {func(c *status.Cluster) {
			c.Machines[0].State, c.Machines[0].Message = status.MachineNotReady, "KubeletNotReady: it is down"
		},
			[]string{"machine gpu-00 Ready -> NotReady: KubeletNotReady: it is down"}},
		"a cordon":       {func(c *status.Cluster) { c.Machines[0].Cordoned = true }, []string{"machine gpu-00 Ready -> Ready, cordoned"}},
		"a machine goes": {func(c *status.Cluster) { c.Machines = c.Machines[1:] }, []string{"machine gpu-00 Ready -> gone"}},
		"a GPU": {func(c *status.Cluster) {
			c.Machines[0].GPUs[5].Health, c.Machines[0].GPUs[5].Reason = status.GPUSick, "XID 79"
		},
			[]string{"gpu gpu-00/5 healthy -> sick: XID 79"}},
		"use is none": {func(c *status.Cluster) { c.Machines[0].GPUs[5].Use = &status.Use{Utilisation: 99} }, []string{}},
		"a service": {func(c *status.Cluster) {
			c.Services[0].State, c.Services[0].Problems = services.StateStarting, []ready.Problem{{Object: "pod/a", Reason: "Unready", Message: "not ready"}}
		},
			[]string{"service agent ready -> starting: pod/a: not ready"}},
		"an alert is over":     {func(c *status.Cluster) { c.Alerts = c.Alerts[1:] }, []string{"alert NodeNotReady firing -> over: gpu-00 is not ready"}},
		"an alert is silenced": {func(c *status.Cluster) { c.Alerts[0].Silenced = true }, []string{"alert NodeNotReady firing -> silenced: gpu-00 is not ready"}},
		"a virtual cluster":    {func(c *status.Cluster) { c.VirtualClusters[0].Guaranteed = 16 }, []string{"vc default 12 GPUs -> 16 GPUs"}},
		"a source": {func(c *status.Cluster) {
			c.Sources[0].State, c.Sources[0].Message = status.StateStale, "connection refused"
		},
			[]string{"source api current -> stale: connection refused"}},
		"the verdict": {func(c *status.Cluster) { c.Verdict = status.Verdict{Level: status.LevelOK} }, []string{"cluster pai critical -> ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := statustest.Cluster(statustest.Small()), statustest.Cluster(statustest.Small())
			is.Jobs = append([]*status.Job{}, was.Jobs...)
			is.At = is.At.Add(time.Second)
			c.change(is)
			assert.Equal(t, c.want, texts(was, is))
		})
	}
}
