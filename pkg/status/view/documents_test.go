package view

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

// TestTheScreensOfTheDocumentsAreThoseOfTheProgram draws the cluster of docs/status-view.md: one GPU is sick, a service can't
// pull its image, and a job waits.
func TestTheScreensOfTheDocumentsAreThoseOfTheProgram(t *testing.T) {
	for name, keys := range map[string][]string{"overview": nil, "machines": {"2"}, "gpus": {"3"}, "virtual-clusters": {"4"}, "services": {"5"}, "jobs": {"6"}} {
		for _, size := range [][2]int{{80, 24}, {160, 50}} {
			frame := ends.ReplaceAllString(drive(t, documented(), size[0], size[1], monochrome()).keys(keys...).frame(), "") + "\n"
			path := filepath.Join("..", "..", "..", "docs", "screens", fmt.Sprintf("%s-%dx%d.txt", name, size[0], size[1]))
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(frame), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), frame, "%s: run the test with -update", path)
		}
	}
}

var ends = regexp.MustCompile(`(?m) +$`)

// documented returns a cluster of three machines with simulated GPUs, some minutes after its start.
func documented() *status.Cluster {
	now := statustest.Now
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	c := &status.Cluster{Name: "pai", Server: "https://10.77.0.11:6443", Kubernetes: "v1.36.3", At: now}
	for _, name := range status.SourceNames() {
		c.Sources = append(c.Sources, status.Source{Name: name, State: status.StateCurrent, Since: ago(3 * time.Minute), Updated: ago(2 * time.Second)})
	}
	for i, cpu := range []int64{8900, 700, 9600} {
		m := status.Machine{Name: fmt.Sprintf("pai-%d", i+1), Address: fmt.Sprintf("10.77.0.%d", i+11), Roles: []string{"pai-master"}, SKU: "cpu-2core", State: status.MachineReady,
			Since: ago(3 * time.Minute), Pods: []int{16, 5, 6}[i], CPU: status.Amount{Total: 16000, Used: cpu}, Memory: status.Amount{Total: 64 << 10, Used: cpu / 10}}
		if i > 0 {
			m.Roles, m.SKU, m.Driver = []string{"pai-worker"}, "sim-8xA100", "550.54.15"
			for k := range int32(8) {
				m.GPUs = append(m.GPUs, status.GPU{Index: k, Model: "NVIDIA A100-SXM4-80GB", Memory: 80 << 10, Health: status.GPUHealthy, Simulated: true,
					Use: &status.Use{At: ago(14 * time.Second), Temperature: 34, Power: 52}})
			}
		}
		c.Machines = append(c.Machines, m)
	}
	for k := range c.Machines[2].GPUs {
		g := &c.Machines[2].GPUs[k]
		g.Owner = &status.Owner{Job: "root/gpu", User: "root", VirtualCluster: "default", Pod: "pai-jobs/gpu-worker-0", Task: "worker[0]"}
		g.Use.Utilisation, g.Use.MemoryUsed, g.Use.Temperature, g.Use.Power = 92, 61<<10, 63, 318
		if k == 2 {
			g.Health, g.Reason, g.Use = status.GPUSick, "XID 79: it has fallen off the bus; restart the machine", nil
		}
	}
	const why = "virtual cluster default has 8 GPUs free, and the job asks for 16"
	began, ended, code := ago(2*time.Minute), ago(time.Minute), int32(0)
	jobs := []api.Job{
		{User: "root", Name: "hello", VirtualCluster: "default", Priority: "test", State: string(job.Succeeded), Code: &code, Tasks: 1, Submitted: ago(63 * time.Second), Started: new(ago(63 * time.Second)), Completed: &ended},
		{User: "root", Name: "waits", VirtualCluster: "default", Priority: "test", State: string(job.Queued), GPUs: 16, Tasks: 2, Submitted: ago(90 * time.Second)},
		{User: "root", Name: "gpu", VirtualCluster: "default", Priority: "prod", State: string(job.Running), GPUs: 8, Tasks: 1, Submitted: ago(130 * time.Second), Started: &began},
	}
	for i := range jobs {
		row := job.Row{Job: jobs[i], Live: true}
		row.UID = row.Name
		j := &status.Job{Row: row}
		switch row.Name {
		case "waits":
			j.Position, j.Why = 1, why
		case "gpu":
			j.Nodes = []string{"pai-3"}
		}
		c.Jobs = append(c.Jobs, j)
	}
	c.VirtualClusters = []status.VirtualCluster{{
		VirtualCluster: schedulerapi.VirtualCluster{Name: "default", Policy: "balanced", Guaranteed: 16, Used: 8, Free: 8, WaitingGangs: 1, WaitingPods: 2},
		Queue: []job.WaitingGang{{Job: "root/waits", Queued: schedulerapi.Queued{VC: "default", Group: "root~waits/default", State: schedulerapi.Waiting, Since: ago(90 * time.Second), Pods: 2, User: "root",
			Reason: why, Request: schedulerapi.Request{GPUs: 16}}}},
	}}
	for _, name := range []string{"agent", "alert-manager", "cluster-configuration", "grafana", "job-controller", "kube-state-metrics", "log-manager", "node-exporter", "prometheus", "scheduler", "storage", "watchdog"} {
		s := state.Status{Name: name, Namespace: "pai-system", State: state.StateReady, Pods: 1, ReadyPods: 1, Chart: name + " 0.1.0", Updated: ago(3 * time.Minute), Configuration: state.ConfigurationCurrent}
		switch name {
		case "grafana", "kube-state-metrics":
			s = state.Status{Name: name, Namespace: "pai-system", State: state.StateDisabled}
		case "cluster-configuration":
			s.Pods, s.ReadyPods = 0, 0
		case "agent":
			s.Pods, s.ReadyPods = 2, 2
		case "log-manager", "node-exporter", "storage":
			s.Pods, s.ReadyPods = 3, 3
		case "watchdog":
			s.State, s.ReadyPods = state.StateStarting, 0
			s.Problems = []ready.Problem{{Object: "pod/watchdog-74d666677d-sdbr6", Reason: "ImagePullBackOff", Message: "image registry.example.org/pai/watchdog:v0.1.0 can't be pulled: dial tcp: no such host",
				Hint: "the node can't reach the registry: check its network, name a mirror in docker-registry of services-configuration.yaml, or use the bundle's image (paictl image list)"}}
		}
		c.Services = append(c.Services, status.Service{Status: s})
	}
	c.Alerts = []status.Alert{
		{Name: "GpuXidFatal", Severity: "critical", Since: ago(time.Minute), Summary: "GPU 2 of pai-3 has failed (XID 79)", Runbook: "https://github.com/openpai/paictl/blob/main/docs/alerts.md#gpuxidfatal",
			Labels: map[string]string{"alertname": "GpuXidFatal", "severity": "critical", "node": "pai-3"}},
		{Name: "GpuUnhealthy", Severity: "info", Since: ago(time.Minute), Summary: "a GPU of pai-3 is not fit for jobs", Labels: map[string]string{"alertname": "GpuUnhealthy", "severity": "info", "node": "pai-3"}},
	}
	status.Complete(c)
	return c
}
