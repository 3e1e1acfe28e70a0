// Package statustest makes models of clusters of any size, for tests and benchmarks of programs that show them.
// In: numbers and a seed. Out: the same model for the same numbers and seed.
package statustest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
)

// Options holds the number of objects of each kind. Zero means no objects, except for Seed and Now.
type Options struct {
	Seed uint64
	// Now is the time of the model. Zero means the variable Now.
	Now time.Time
	// Machines is the number of machines, including NotReady and Outside. GPUs is the number of GPUs of each machine.
	Machines, GPUs, NotReady, Outside int
	// SickGPUs is the number of sick GPUs, which are spread over the machines.
	SickGPUs        int
	VirtualClusters int
	// Jobs is the number of jobs. Their states alternate between running, waiting and finished, until all GPUs are
	// used.
	Jobs             int
	Services, Broken int // Broken are services that failed
	Alerts, Events   int
	// Stale lists sources that last responded two minutes ago. Absent lists sources that don't exist in the cluster.
	Stale, Absent []string
}

// Small returns the options of a cluster with three machines and at least one object of each kind.
func Small() Options {
	return Options{Seed: 1, Machines: 3, GPUs: 8, NotReady: 1, SickGPUs: 1, VirtualClusters: 2, Jobs: 12, Services: 10, Broken: 1, Alerts: 3, Events: 20}
}

// Large returns the options of a cluster of the largest expected size.
func Large() Options {
	return Options{Seed: 1, Machines: 1000, GPUs: 8, NotReady: 7, Outside: 3, SickGPUs: 40, VirtualClusters: 20, Jobs: 10_000, Services: 12, Broken: 1, Alerts: 60, Events: status.MaxEvents}
}

// Now is the default time of a model.
var Now = time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)

type maker struct {
	Options
	*rand.Rand
	out *status.Cluster
	// free lists the free GPUs, machine by machine.
	free []place
}

type place struct{ machine, gpu int }

// Cluster returns the model that the options describe.
func Cluster(o Options) *status.Cluster {
	if o.Now.IsZero() {
		o.Now = Now
	}
	m := &maker{Options: o, out: &status.Cluster{
		Name: "pai", Server: "https://10.0.0.1:6443", Kubernetes: "v1.34.2", At: o.Now,
		Machines: []status.Machine{}, VirtualClusters: []status.VirtualCluster{}, Services: []status.Service{}, Jobs: []*status.Job{}, Alerts: []status.Alert{},
	}}
	m.Rand = rand.New(rand.NewPCG(o.Seed, 1)) //nolint:gosec // the same seed has to make the same model
	m.sources()
	m.machines()
	m.sicken()
	m.virtualClusters()
	m.jobs()
	m.services()
	m.alerts()
	m.events()
	status.Complete(m.out)
	return m.out
}

func (m *maker) ago(most time.Duration) time.Time {
	return m.Now.Add(-time.Duration(m.Int64N(int64(most))).Truncate(time.Second))
}

func (m *maker) sources() {
	for _, name := range status.SourceNames() {
		s := status.Source{Name: name, State: status.StateCurrent, Since: m.Now.Add(-time.Hour), Updated: m.Now.Add(-3 * time.Second)}
		switch {
		case slices.Contains(m.Stale, name):
			s.State, s.Since, s.Message, s.Hint = status.StateStale, m.Now.Add(-2*time.Minute), "it does not answer: connection refused", "check with: paictl cluster status -p DIR"
			s.Updated = s.Since
		case slices.Contains(m.Absent, name):
			s.State, s.Message, s.Hint = status.StateAbsent, "the cluster doesn't have it yet", "install it with: paictl service start"
		}
		m.out.Sources = append(m.out.Sources, s)
	}
}

func (m *maker) machines() {
	digits := len(fmt.Sprint(max(m.Machines, 100) - 1))
	for i := range m.Machines {
		machine := status.Machine{
			Name: fmt.Sprintf("gpu-%0*d", digits, i), Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), Roles: []string{"pai-worker"}, SKU: "a100-8",
			State: status.MachineReady, Since: m.ago(60 * 24 * time.Hour), Kubelet: "v1.34.2", Runtime: "containerd://2.1.4", Kernel: "6.8.0-60-generic", OS: "Ubuntu 24.04.2 LTS", Driver: "570.133.20",
			Certificates: m.Now.Add(time.Duration(100+m.IntN(200)) * 24 * time.Hour), Pods: 6 + m.IntN(20),
			CPU: status.Amount{Total: 96000, Used: int64(m.IntN(96000))}, Memory: status.Amount{Total: 1 << 20, Used: int64(m.IntN(1 << 20))},
		}
		if i == 0 {
			machine.Roles = []string{"pai-master", "pai-storage", "pai-worker"}
		}
		silent := false
		switch at := m.Machines - 1 - i; { // the last machines
		case at < m.Outside:
			machine = status.Machine{Name: machine.Name, Address: machine.Address, Roles: machine.Roles, SKU: machine.SKU, State: status.MachineOutside,
				Message: "not in the cluster", Hint: "paictl cluster up adds it to the cluster"}
			m.out.Machines = append(m.out.Machines, machine)
			continue
		case at < m.Outside+m.NotReady:
			silent, machine.State, machine.Since, machine.Message = true, status.MachineUnknown, m.ago(time.Hour), "Kubelet stopped posting node status."
			machine.Hint = "look at it with: paictl cluster status -p DIR"
		}
		for k := range m.GPUs {
			g := status.GPU{Index: int32(k), Model: "NVIDIA A100-SXM4-80GB", UUID: fmt.Sprintf("GPU-%08x-%04x", i, k), Memory: 81920, Health: status.GPUHealthy}
			if silent {
				g.Health = status.GPUUnknown
			} else {
				m.free = append(m.free, place{i, k})
				g.Use = &status.Use{At: m.Now.Add(-10 * time.Second), MemoryUsed: 4, Temperature: 31 + float64(m.IntN(6)), Power: 55 + float64(m.IntN(10))}
			}
			machine.GPUs = append(machine.GPUs, g)
		}
		m.out.Machines = append(m.out.Machines, machine)
	}
}

// sicken makes some GPUs sick, with four different causes in turn.
func (m *maker) sicken() {
	reasons := []string{"XID 79: the GPU has fallen off the bus; restart the machine", "2 uncorrectable memory errors; reset the GPU",
		"XID 79: the GPU has fallen off the bus; restart the machine", "row remapping failed; replace the GPU"}
	for i := range min(m.SickGPUs, len(m.free)) {
		at := m.IntN(len(m.free))
		g := &m.out.Machines[m.free[at].machine].GPUs[m.free[at].gpu]
		g.Health, g.Reason, g.Use = status.GPUSick, reasons[i%len(reasons)], nil
		m.free = slices.Delete(m.free, at, at+1)
	}
}

func (m *maker) virtualClusters() {
	for i := range m.VirtualClusters {
		own := m.Machines * m.GPUs / m.VirtualClusters
		v := status.VirtualCluster{VirtualCluster: schedulerapi.VirtualCluster{Name: vcName(i), Policy: "in-order",
			Guaranteed: own, Free: own, Cells: []schedulerapi.Cells{{CellType: "a100-8", CellNumber: own / max(m.GPUs, 1)}}}}
		m.out.VirtualClusters = append(m.out.VirtualClusters, v)
	}
}

func vcName(i int) string {
	names := []string{"default", "vision", "language", "speech", "robots"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("team-%02d", i)
}

var users = []string{"alice", "bob", "carol", "dmitri", "erin", "faruk", "grace", "heng"}

func (m *maker) jobs() {
	verbs := []string{"train", "eval", "tune", "serve", "prepare"}
	nets := []string{"resnet", "llama", "bert", "whisper", "vit"}
	sizes := []int{1, 1, 1, 2, 4, 8, 8, 16}
	for i := range m.Jobs {
		user, name := users[m.IntN(len(users))], fmt.Sprintf("%s-%s-%d", verbs[m.IntN(len(verbs))], nets[m.IntN(len(nets))], i)
		// The list is sorted by time of submission, newest first.
		submitted := m.Now.Add(-time.Duration(i+1) * 40 * time.Second)
		vc := m.IntN(max(m.VirtualClusters, 1))
		j := &status.Job{Row: job.Row{Live: true, Job: api.Job{
			Framework: v1.ObjectName(user, name), UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", m.Uint32(), i), User: user, Name: name,
			VirtualCluster: vcName(vc), GPUs: sizes[m.IntN(len(sizes))], Submitted: submitted, Priority: []string{"", "", "prod", "oppo"}[m.IntN(4)],
		}}}
		j.Tasks = max(1, j.GPUs/8)
		m.fate(j, vc, i)
		m.out.Jobs = append(m.out.Jobs, j)
	}
	slices.SortFunc(m.out.Jobs, func(a, b *status.Job) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(b.UID, a.UID))
	})
	for i := range m.out.VirtualClusters {
		v := &m.out.VirtualClusters[i]
		for k := range v.Queue {
			v.Queue[k].PositionInVC = k + 1
			v.WaitingPods += v.Queue[k].Pods
		}
		v.WaitingGangs = len(v.Queue)
		if n := v.Free / max(m.GPUs, 1); n > 0 {
			v.FreeByLevel = append(v.FreeByLevel, cell.LevelCount{CellType: "a100-8", GPUs: m.GPUs, Count: n})
		}
		if n := v.Free % max(m.GPUs, 1); n > 0 {
			v.FreeByLevel = append(v.FreeByLevel, cell.LevelCount{CellType: "a100", GPUs: 1, Count: n})
		}
	}
}

// fate sets the state of job number i, and gives GPUs to running jobs.
func (m *maker) fate(j *status.Job, vc, i int) {
	began := j.Submitted.Add(20 * time.Second)
	ended := began.Add(time.Duration(m.Int64N(int64(max(m.Now.Sub(began), time.Second)))).Truncate(time.Second))
	switch i % 6 {
	case 0, 1, 2:
		if len(m.free) >= j.GPUs {
			j.State, j.Started = string(job.Running), &began
			m.place(j, vc)
			return
		}
		m.queue(j, vc)
	case 3:
		m.queue(j, vc)
	case 4:
		code := int32(0)
		j.State, j.Started, j.Completed, j.Code, j.Phrase = string(job.Succeeded), &began, &ended, &code, "Succeeded"
	default:
		code := int32(137)
		j.State, j.Started, j.Completed, j.Code, j.Phrase = string(job.Failed), &began, &ended, &code, "ContainerOOMKilled"
		j.Why = "ContainerOOMKilled (exit 137)"
	}
}

func (m *maker) place(j *status.Job, vc int) {
	opportunistic := j.Priority == "oppo"
	for k, at := range m.free[:j.GPUs] {
		machine := &m.out.Machines[at.machine]
		g := &machine.GPUs[at.gpu]
		task := k / 8
		g.Owner = &status.Owner{Job: j.Title(), JobUID: j.UID, User: j.User, VirtualCluster: j.VirtualCluster, Opportunistic: opportunistic,
			Pod: fmt.Sprintf("pai-jobs/%s-worker-%d", j.Framework, task), Task: fmt.Sprintf("worker[%d]", task)}
		if g.Use != nil {
			busy := float64(m.IntN(101))
			g.Use = &status.Use{At: g.Use.At, Utilisation: busy, MemoryUsed: int64(m.IntN(81920)), Temperature: 40 + busy/3, Power: 90 + 3*busy}
		}
		if !slices.Contains(j.Nodes, machine.Name) {
			j.Nodes = append(j.Nodes, machine.Name)
		}
	}
	m.free = m.free[j.GPUs:]
	if vc >= len(m.out.VirtualClusters) {
		return
	}
	v := &m.out.VirtualClusters[vc]
	if opportunistic {
		v.Opportunistic += j.GPUs
		return
	}
	v.Used += j.GPUs
	v.Free = max(0, v.Free-j.GPUs)
}

func (m *maker) queue(j *status.Job, vc int) {
	j.State = string(job.Queued)
	if vc >= len(m.out.VirtualClusters) {
		j.State = string(job.Waiting)
		return
	}
	v := &m.out.VirtualClusters[vc]
	j.Position = len(v.Queue) + 1
	j.Why = fmt.Sprintf("virtual cluster %s has %d GPUs free, and the job asks for %d", v.Name, v.Free, j.GPUs)
	v.Queue = append(v.Queue, job.WaitingGang{Job: j.Title(), Queued: schedulerapi.Queued{VC: v.Name, Group: j.User + "~" + j.Name + "/default", State: schedulerapi.Waiting,
		Since: j.Submitted, Pods: j.Tasks, User: j.User, Reason: j.Why, Request: schedulerapi.Request{GPUs: j.GPUs}}})
}

func (m *maker) services() {
	names := []string{"agent", "alert-manager", "cluster-configuration", "grafana", "job-controller", "kube-state-metrics", "log-manager", "node-exporter", "prometheus", "scheduler", "storage", "watchdog"}
	for i := range m.Services {
		name := fmt.Sprintf("extra-%d", i)
		if i < len(names) {
			name = names[i]
		}
		s := state.Status{Name: name, Namespace: "pai-system", State: state.StateReady, Pods: 1 + m.IntN(3), Revision: 1 + m.IntN(9), Chart: name + " 1.0.0",
			Updated: m.ago(20 * 24 * time.Hour), Configuration: state.ConfigurationCurrent}
		s.ReadyPods = s.Pods
		if i >= m.Services-m.Broken {
			s.State, s.ReadyPods = state.StateFailed, 0
			s.Problems = []ready.Problem{{Object: "pod/" + name + "-0", Reason: "ImagePullBackOff", Message: "image " + name + ":1.0.0 can't be pulled: not found",
				Hint: "check the image with: paictl image list", Final: true}}
		}
		m.out.Services = append(m.out.Services, status.Service{Status: s})
	}
	slices.SortFunc(m.out.Services, func(a, b status.Service) int { return cmp.Compare(a.Name, b.Name) })
}

func (m *maker) alerts() {
	kinds := []status.Alert{
		{Name: "NodeNotReady", Severity: "critical", Summary: "%s is not ready"}, {Name: "GpuUnhealthy", Severity: "warning", Summary: "a GPU of %s is not fit for jobs"},
		{Name: "FilesystemLow", Severity: "warning", Summary: "/ of %s has 12% left"}, {Name: "GpuHot", Severity: "warning", Summary: "a GPU of %s has 91 degrees"},
	}
	for i := range m.Alerts {
		a := kinds[i%len(kinds)]
		node := "gpu-000"
		if len(m.out.Machines) > 0 {
			node = m.out.Machines[m.IntN(len(m.out.Machines))].Name
		}
		a.Since, a.Summary = m.ago(12*time.Hour), strings.Replace(a.Summary, "%s", node, 1)
		a.Labels = map[string]string{"alertname": a.Name, "severity": a.Severity, "node": node}
		a.Silenced = i%7 == 6
		m.out.Alerts = append(m.out.Alerts, a)
	}
	slices.SortStableFunc(m.out.Alerts, status.CompareAlerts)
}

func (m *maker) events() {
	for i := range min(m.Events, status.MaxEvents) {
		e := status.Event{At: m.Now.Add(-time.Duration(i*7) * time.Second), Count: 1 + m.IntN(4), Type: "Normal", Reason: "Started", Namespace: "pai-jobs", Message: "Started container app"}
		switch {
		case i%5 == 4 && len(m.out.Machines) > 0:
			e.Type, e.Reason, e.Namespace, e.Object, e.Message = "Warning", "NodeNotReady", "", "node/"+m.out.Machines[len(m.out.Machines)-1].Name, "Node status is now: NodeNotReady"
		case len(m.out.Jobs) > 0:
			j := m.out.Jobs[m.IntN(len(m.out.Jobs))]
			e.Job, e.Object = j.Title(), "pod/"+j.Framework+"-worker-0"
		default:
			e.Namespace, e.Object = "pai-system", "pod/prometheus-0"
		}
		m.out.Events = append(m.out.Events, e)
	}
}
