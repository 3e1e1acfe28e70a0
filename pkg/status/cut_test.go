package status_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/job"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

// A user sees all machines and GPUs. The user doesn't see addresses, versions, or which jobs of others hold the GPUs.
func TestACutModelHasNothingThatAPersonMayNotSee(t *testing.T) {
	c := statustest.Cluster(statustest.Options{Seed: 3, Machines: 6, GPUs: 8, NotReady: 1, SickGPUs: 2, VirtualClusters: 3, Jobs: 24, Services: 4, Broken: 1, Alerts: 4, Events: 40, Stale: []string{status.SourcePrometheus}})
	mine, others := c.Jobs[0], map[string]bool{}
	for _, j := range c.Jobs {
		if j.User != mine.User {
			others[j.Title()] = true
		}
	}
	require.NotEmpty(t, others)
	foreign := slices.Sorted(maps.Keys(others))[0]
	user, name, _ := strings.Cut(foreign, "/")
	c.Machines[0].Address, c.Machines[0].Kubelet, c.Machines[0].Kernel, c.Machines[0].Hint = "10.9.8.7", "v1.2.3-inside", "6.1-inside", "paictl node inside"
	c.Machines[0].GPUs[0].UUID = "GPU-inside"
	c.Source(status.SourcePrometheus).Message = "dial tcp 10.9.8.7:9090: refused"
	c.VirtualClusters[0].Queue = []job.WaitingGang{{Job: foreign, Queued: schedulerapi.Queued{Group: user + "~" + name + "/worker", User: user}}, {Job: mine.Title(), Queued: schedulerapi.Queued{User: mine.User, Reason: "behind " + user + "~" + name + "/worker"}}}
	c.Alerts = append(c.Alerts, status.Alert{Name: "OfAnother", Labels: map[string]string{alerts.LabelUser: user, alerts.LabelJob: name}}, status.Alert{Name: "OfMine", Labels: map[string]string{alerts.LabelUser: mine.User, alerts.LabelJob: mine.Name}})
	granted := c.VirtualClusters[0].Name
	c.Machines[1].State, c.Machines[1].Message = status.MachineNotReady, "Kubelet Not Ready: Get https://10.9.8.7:10250: inside"
	c.Machines[2].State, c.Machines[2].Message = status.MachineReady, "the machine starts kernel 6.1-inside next"
	c.Events = append(c.Events, status.Event{Job: mine.Title(), Message: "preempted for " + user + "~" + name + "/worker"})
	c.Alerts = append(c.Alerts, status.Alert{Name: "OnAMachine", Labels: map[string]string{alerts.LabelUser: mine.User, alerts.LabelJob: mine.Name, "instance": "10.9.8.7:9400"}})
	c.Machines[2].Cordoned, c.Machines[2].CordonedBy, c.Machines[2].CordonReason = true, "root-inside", "a fan is loud"
	before, err := json.Marshal(c)
	require.NoError(t, err)

	cutter := &status.Cutter{View: status.View{VC: func(n string) bool { return n == granted }, Names: func(u, n string) string {
		if u == mine.User {
			return u + "/" + n
		}
		return ""
	}}}
	cut := cutter.Cut(c)
	text, err := json.Marshal(cut)
	require.NoError(t, err)
	for title := range others {
		assert.NotContains(t, string(text), title)
		assert.NotContains(t, string(text), strings.ReplaceAll(title, "/", "~"))
	}
	for _, inside := range []string{"inside", "10.9.8.7", "OfAnother", c.Server} {
		assert.NotContains(t, string(text), inside)
	}
	assert.Equal(t, []string{"another job", mine.Title()}, []string{cut.VirtualClusters[0].Queue[0].Job, cut.VirtualClusters[0].Queue[1].Job})
	require.Len(t, cut.VirtualClusters, 1)
	require.Len(t, cut.Alerts, 2)
	assert.Equal(t, "OfMine", cut.Alerts[0].Name)
	assert.Equal(t, []string{"Kubelet Not Ready", ""}, []string{cut.Machines[1].Message, cut.Machines[2].Message})
	assert.Equal(t, "cordoned: a fan is loud", cut.Machines[2].CordonText())
	assert.Empty(t, cut.Services)
	assert.Equal(t, [...]string{status.StateAbsent, status.OnlyAdministrators}, [...]string{cut.Source(status.SourceServices).State, cut.Source(status.SourceServices).Message})
	assert.Equal(t, status.StateStale, cut.Source(status.SourcePrometheus).State)
	assert.Equal(t, [...]int{c.Counts.Machines, c.Counts.GPUs, c.Counts.GPUsUsed, c.Counts.GPUsSick}, [...]int{cut.Counts.Machines, cut.Counts.GPUs, cut.Counts.GPUsUsed, cut.Counts.GPUsSick}, "GPUs that others hold are not free")
	after, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "a model that others read has changed")

	assert.Same(t, cut, cutter.Cut(c))
	next := *c
	next.At = c.At.Add(time.Second)
	assert.Same(t, &cut.Machines[0], &cutter.Cut(&next).Machines[0], "the cut of machines that didn't change is made again")
}

// changedMachine returns a later model in which one machine differs.
func changedMachine(c *status.Cluster, at int) *status.Cluster {
	next := *c
	next.At, next.Machines = c.At.Add(time.Second), slices.Clone(c.Machines)
	m := &next.Machines[at]
	m.Cordoned, m.GPUs = !m.Cordoned, slices.Clone(m.GPUs)
	return &next
}

func TestACutKeepsTheGPUsOfMachinesThatDidNotChange(t *testing.T) {
	c := statustest.Cluster(statustest.Small())
	hidden := map[string]bool{}
	cutter := &status.Cutter{View: status.View{VC: func(string) bool { return true }, Names: func(u, n string) string {
		if hidden[u+"/"+n] {
			return ""
		}
		return u + "/" + n
	}}}
	cut, next := cutter.Cut(c), changedMachine(c, 1)
	is := cutter.Cut(next)
	assert.Same(t, &cut.Machines[0].GPUs[0], &is.Machines[0].GPUs[0])
	assert.NotSame(t, &cut.Machines[1].GPUs[0], &is.Machines[1].GPUs[0])
	assert.NotEqual(t, cut.Machines[1].Cordoned, is.Machines[1].Cordoned)
	assert.Len(t, status.NewDelta(cut, is).Machines, 1)

	at := slices.IndexFunc(c.Machines, func(m status.Machine) bool { return len(m.GPUs) > 0 && m.GPUs[0].Owner != nil })
	require.GreaterOrEqual(t, at, 0)
	hidden[c.Machines[at].GPUs[0].Owner.Job] = true
	assert.Empty(t, cutter.Cut(changedMachine(next, 1)).Machines[at].GPUs[0].Owner.Job, "a kept GPU shows a job that is hidden now")
}

// BenchmarkACutAfterAChangeOfAMachine measures the cost of one event for one person in a large cluster: the cut of the model, and the difference.
func BenchmarkACutAfterAChangeOfAMachine(b *testing.B) {
	c := statustest.Cluster(statustest.Options{Seed: 1, Machines: 1000, GPUs: 8, VirtualClusters: 5, Jobs: 10_000, Events: 500})
	cutter := &status.Cutter{View: status.View{VC: func(string) bool { return true }, Names: func(u, n string) string { return u + "/" + n }}}
	parts := []string{status.PartMachines}
	was := cutter.Cut(c).Only(parts)
	i := 0
	for b.Loop() {
		i++
		c = changedMachine(c, i%1000)
		is := cutter.Cut(c).Only(parts)
		if d := status.NewDelta(was, is); len(d.Machines) != 1 {
			b.Fatal("one machine changed")
		}
		was = is
	}
}

// An administrator's read-only token shows all jobs, but not the parts that only administrators see.
func TestAReaderWhoSeesAllJobsGetsNoAlertsAboutMachines(t *testing.T) {
	c := statustest.Cluster(statustest.Small())
	c.Alerts = []status.Alert{{Name: "NodeDown", Labels: map[string]string{"instance": "10.9.8.7:9100"}}, {Name: "Half", Labels: map[string]string{alerts.LabelUser: "ann"}}}
	cutter := &status.Cutter{View: status.View{VC: func(string) bool { return true }, Names: func(u, n string) string { return u + "/" + n }}}
	assert.Empty(t, cutter.Cut(c).Alerts)
}

// A job may appear in the list of jobs later than on the machines, and disappear from the list earlier.
func TestACutOfMachinesFollowsTheListOfJobs(t *testing.T) {
	c := statustest.Cluster(statustest.Small())
	known := false
	cutter := &status.Cutter{View: status.View{VC: func(string) bool { return false }, Names: func(u, n string) string {
		if known {
			return u + "/" + n
		}
		return ""
	}}}
	owners := func(c *status.Cluster) (n int) {
		for i := range c.Machines {
			for k := range c.Machines[i].GPUs {
				if o := c.Machines[i].GPUs[k].Owner; o != nil && o.Job != "" {
					n++
				}
			}
		}
		return n
	}
	require.Positive(t, owners(c))
	later := func() *status.Cluster {
		next := *c
		next.At = next.At.Add(time.Second)
		return &next
	}
	assert.Zero(t, owners(cutter.Cut(c)))
	known = true
	assert.Equal(t, owners(c), owners(cutter.Cut(later())))
	known = false
	assert.Zero(t, owners(cutter.Cut(later())))
}

// apply computes the second model from the first model and the difference, as readers of the stream do.
func apply(c *status.Cluster, d *status.Delta) *status.Cluster {
	out := *c
	out.At = d.At
	set(&out.Verdict, d.Verdict)
	set(&out.Counts, d.Counts)
	set(&out.Sources, d.Sources)
	set(&out.VirtualClusters, d.VirtualClusters)
	set(&out.Services, d.Services)
	set(&out.Events, d.Events)
	set(&out.Alerts, d.Alerts)
	machines := map[string]status.Machine{}
	for _, m := range append(slices.Clone(c.Machines), d.Machines...) {
		machines[m.Name] = m
	}
	for _, name := range d.GoneMachines {
		delete(machines, name)
	}
	out.Machines = append([]status.Machine{}, slices.SortedFunc(maps.Values(machines), func(a, b status.Machine) int { return strings.Compare(a.Name, b.Name) })...)
	jobs := map[string]*status.Job{}
	for _, j := range append(slices.Clone(c.Jobs), d.Jobs...) {
		jobs[j.UID] = j
	}
	for _, uid := range d.GoneJobs {
		delete(jobs, uid)
	}
	out.Jobs = append([]*status.Job{}, slices.SortedFunc(maps.Values(jobs), func(a, b *status.Job) int { return strings.Compare(a.UID, b.UID) })...)
	return &out
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func TestADifferenceMakesTheLaterModelOfTheEarlier(t *testing.T) {
	sorted := func(seed uint64, change func(*statustest.Options)) *status.Cluster {
		o := statustest.Small()
		o.Seed = seed
		change(&o)
		c := statustest.Cluster(o)
		for i, j := range c.Jobs {
			j.UID = string(rune('a' + i))
		}
		slices.SortFunc(c.Jobs, func(a, b *status.Job) int { return strings.Compare(a.UID, b.UID) })
		return c
	}
	same := func(*statustest.Options) {}
	models := []*status.Cluster{sorted(1, same), sorted(2, same), sorted(1, func(o *statustest.Options) { o.Machines, o.Jobs, o.Alerts, o.Events = 1, 2, 0, 0 }),
		sorted(1, func(o *statustest.Options) { o.Services, o.Broken, o.VirtualClusters, o.Jobs = 0, 0, 0, 0 })}
	for _, was := range models {
		for _, is := range models {
			d := status.NewDelta(was, is)
			if was == is {
				assert.Nil(t, d)
				continue
			}
			require.NotNil(t, d)
			text, err := json.Marshal(d)
			require.NoError(t, err)
			var back status.Delta
			require.NoError(t, json.Unmarshal(text, &back))
			want, err := json.Marshal(is)
			require.NoError(t, err)
			have, err := json.Marshal(apply(was, &back))
			require.NoError(t, err)
			assert.JSONEq(t, string(want), string(have))
		}
	}
}

func TestADifferenceHasOnlyTheChangedMachine(t *testing.T) {
	was := statustest.Cluster(statustest.Small())
	is := *was
	is.Machines = slices.Clone(was.Machines)
	is.Machines[1].Cordoned = true
	d := status.NewDelta(was, &is)
	require.Len(t, d.Machines, 1)
	assert.Equal(t, is.Machines[1].Name, d.Machines[0].Name)
	assert.Nil(t, d.Sources)
	assert.Nil(t, d.Events)
	assert.Empty(t, d.Jobs)
}

func TestAReaderChoosesParts(t *testing.T) {
	c := statustest.Cluster(statustest.Small())
	only := c.Only([]string{status.PartMachines})
	assert.Equal(t, c.Machines, only.Machines)
	assert.Empty(t, only.Jobs)
	assert.NotNil(t, only.Jobs, "an empty list is a list in JSON")
	assert.Equal(t, c.Verdict, only.Verdict)
	assert.NotEmpty(t, c.Jobs)
	require.EqualError(t, status.CheckParts([]string{"machines", "gpus"}), `no part of the status is called "gpus"; the parts are machines, virtualClusters, services, jobs, events, alerts`)
}
