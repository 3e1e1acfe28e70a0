package render

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// withCPUs returns a cluster with machines without GPUs. The virtual cluster default owns 30 of their CPU cells, and small owns no CPU cells.
func withCPUs() Options {
	o := options()
	o.Cluster.SKUs["CPU"] = SKU{MilliCPU: 1000, MemoryMB: 4 << 10, PerNode: 15}
	vc := o.Cluster.VirtualClusters["default"]
	vc.Cells["CPU"], vc.Pinned, vc.PinnedTypes = 30, []string{"prep", "fast"}, map[string]string{"prep": "CPU", "fast": "A100"}
	o.Cluster.VirtualClusters["default"] = vc
	return o
}

const inSmall = "defaults: {virtualCluster: small}\n"

func TestTasksWithoutGPUsLieOnCPUCells(t *testing.T) {
	for name, c := range map[string]struct {
		roles, rest string
		want        map[string]string
	}{
		"a gang alone": {worker("a", 3, 0), "", map[string]string{"a": "default 10 CPU alice~train/default set 0 of [{3  4}]"}},
		"beside GPUs they are another gang": {worker("ps", 2, 0) + worker("w", 2, 8), "", map[string]string{
			"ps": "default 10 CPU alice~train/default-CPU set 0 of [{2  4}]", "w": "default 10  alice~train/default set 0 of [{2  8}]",
		}},
		"in a virtual cluster without any they take GPUs": {worker("a", 1, 0), inSmall, map[string]string{"a": "small 10  alice~train/default set 0 of [{1  1}]"}},
		"opportunistic ones take those of others":         {worker("a", 1, 0), inSmall + "extras: {hivedScheduler: {jobPriorityClass: oppo}}\n", map[string]string{"a": "small -1 CPU alice~train/default set 0 of [{1  4}]"}},
		"a type of GPUs may be named":                     {worker("a", 1, 0), "extras: {hivedScheduler: {taskRoles: {a: {skuType: A100}}}}\n", map[string]string{"a": "default 10 A100 alice~train/default set 0 of [{1  1}]"}},
		"a type that another role asks for is no wish of theirs": {worker("ps", 1, 0) + worker("w", 1, 8), "extras: {hivedScheduler: {taskRoles: {w: {skuType: A100}}}}\n", map[string]string{
			"ps": "default 10 CPU alice~train/default-CPU set 0 of [{1  4}]", "w": "default 10 A100 alice~train/default-A100 set 0 of [{1  8}]",
		}},
		"nor are CPU cells one of roles with GPUs": {worker("ps", 1, 0) + worker("w", 1, 8), "extras: {hivedScheduler: {taskRoles: {ps: {skuType: CPU}}}}\n", map[string]string{
			"ps": "default 10 CPU alice~train/default-CPU set 0 of [{1  4}]", "w": "default 10  alice~train/default set 0 of [{1  8}]",
		}},
		"and that of CPU cells":                            {worker("a", 1, 0), "extras: {hivedScheduler: {taskRoles: {a: {skuType: CPU}}}}\n", map[string]string{"a": "default 10 CPU alice~train/default set 0 of [{1  4}]"}},
		"in an affinity group with GPUs they take GPUs":    {worker("ps", 1, 0) + worker("w", 1, 8), "extras: {hivedScheduler: {taskRoles: {ps: {affinityGroupName: g}, w: {affinityGroupName: g}}}}\n", map[string]string{"ps": "default 10  alice~train/g set 0 of [{1  1} {1  8}]", "w": "default 10  alice~train/g set 1 of [{1  1} {1  8}]"}},
		"a pinned cell of processors counts in processors": {worker("a", 1, 0), "extras: {hivedScheduler: {taskRoles: {a: {pinnedCellId: prep}}}}\n", map[string]string{"a": "default 10 prep alice~train/default set 0 of [{1  4}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := requests(t, mustRender(t, job(t, c.roles, c.rest), withCPUs()).Framework)
			assert.Equal(t, c.want, got)
		})
	}
}

// others returns the alternative requests of the roles, for the case that they can't have CPU cells.
func others(t *testing.T, f *v1.Framework) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range f.Spec.TaskRoles {
		got, err := annotation.ParseRequest(r.Task.Pod.Annotations[annotation.SpecKey], "pai-jobs/"+f.Name)
		require.NoError(t, err)
		if got.Alternative != nil {
			out[r.Task.Pod.Annotations[v1.AnnotationTaskRole]] = fmt.Sprintf("%s %d%s %s set %d of %v", got.Alternative.VirtualCluster, got.Alternative.Priority, got.Alternative.LeafType, got.Alternative.Gang, got.Alternative.Set, got.Alternative.Root.Pods)
		}
	}
	return out
}

// Tasks that can also run on other machines must not have to wait for the only machine without GPUs.
func TestTasksWithoutGPUsMayTakeTheirShareOfGPUsInstead(t *testing.T) {
	const a, oppo = "default 10 alice~train/default", "extras: {hivedScheduler: {jobPriorityClass: oppo}}\n"
	asks := func(cpu, memory, instances int) string {
		return fmt.Sprintf("  a: {instances: %d, dockerImage: img, resourcePerInstance: {cpu: %d, memoryMB: %d, gpu: 0}, commands: [a]}\n", instances, cpu, memory)
	}
	for name, c := range map[string]struct {
		roles, rest string
		change      func(*Cluster)
		want        map[string]string
	}{
		"a gang":                    {worker("a", 3, 0), "", nil, map[string]string{"a": a + " set 0 of [{3  1}]"}},
		"with more processors":      {asks(9, 64, 2), "", nil, map[string]string{"a": a + " set 0 of [{2  3}]"}},
		"with more memory":          {asks(1, 40000, 1), "", nil, map[string]string{"a": a + " set 0 of [{1  2}]"}},
		"beside GPUs":               {worker("ps", 2, 0) + worker("w", 2, 8), "", nil, map[string]string{"ps": a + "-CPU set 0 of [{2  1}]"}},
		"tasks that start alone":    {worker("a", 3, 0), "extras: {gangAllocation: false}\n", nil, map[string]string{"a": "default 10 pai-jobs/" + v1.ObjectName("alice", "train") + " set 0 of [{1  1}]"}},
		"opportunistic ones":        {worker("a", 1, 0), inSmall + oppo, nil, map[string]string{"a": "small -1 alice~train/default set 0 of [{1  1}]"}},
		"roles of several sizes":    {asks(9, 64, 2) + worker("b", 1, 0), "", nil, map[string]string{"a": a + " set 0 of [{2  3} {1  1}]", "b": a + " set 1 of [{2  3} {1  1}]"}},
		"but not if they name them": {worker("a", 1, 0), "extras: {hivedScheduler: {taskRoles: {a: {skuType: CPU}}}}\n", nil, map[string]string{}},
		"nor if it is more than the virtual cluster owns": {worker("a", 30, 0), "", func(c *Cluster) {
			c.SKUs["CPU"] = SKU{MilliCPU: 4000, MemoryMB: 16 << 10, PerNode: 15}
			c.VirtualClusters["default"].Cells["A100"], c.VirtualClusters["default"].Cells["V100"] = 8, 8
		}, map[string]string{}},
		"nor if it is more than a user may hold": {asks(4, 64, 3), "", func(c *Cluster) {
			vc := c.VirtualClusters["default"]
			vc.PerUser = 2
			c.VirtualClusters["default"] = vc
		}, map[string]string{}},
		"nor if it owns no GPUs":               {worker("a", 1, 0), "", func(c *Cluster) { c.VirtualClusters["default"] = VirtualCluster{Cells: map[string]int{"CPU": 30}} }, map[string]string{}},
		"nor if the operator keeps these free": {worker("a", 1, 0), "", func(c *Cluster) { c.ReserveGPUMachines = true }, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := withCPUs()
			if c.change != nil {
				c.change(&o.Cluster)
			}
			assert.Equal(t, c.want, others(t, mustRender(t, job(t, c.roles, c.rest), o).Framework))
		})
	}
}

// A job that could run on machines with GPUs isn't rejected because machines without GPUs can't hold it.
func TestWhatCPUCellsNeverHoldTakesItsShareOfGPUs(t *testing.T) {
	for name, c := range map[string]struct{ roles, want string }{
		"a task that is larger than a machine": {"  a: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: 16, memoryMB: 64, gpu: 0}, commands: [a]}\n", "default 10  alice~train/default set 0 of [{1  4}]"},
		"more than the virtual cluster owns":   {"  a: {instances: 4, dockerImage: img, resourcePerInstance: {cpu: 10, memoryMB: 64, gpu: 0}, commands: [a]}\n", "default 10  alice~train/default set 0 of [{4  3}]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := mustRender(t, job(t, c.roles, ""), withCPUs()).Framework
			assert.Equal(t, map[string]string{"a": c.want}, requests(t, f))
			assert.Empty(t, others(t, f))
			o := withCPUs()
			o.Cluster.ReserveGPUMachines = true
			_, findings := Render(job(t, c.roles, ""), o)
			require.ErrorContains(t, findings.Err(), " CPU cells")
			assert.NotContains(t, findings.Err().Error(), "instead")
		})
	}
}

func TestPodsOnCPUCellsSeeNoGPU(t *testing.T) {
	f := mustRender(t, job(t, worker("a", 1, 0), ""), withCPUs()).Framework
	env := map[string]string{}
	for _, e := range f.Spec.TaskRoles[0].Task.Pod.Spec.Containers[0].Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil {
			assert.NotContains(t, e.ValueFrom.FieldRef.FieldPath, annotation.IsolationKey)
		}
	}
	assert.Equal(t, "none", env["NVIDIA_VISIBLE_DEVICES"])
}

func TestWhatHasNoRoomIsRefusedWithItsReason(t *testing.T) {
	cpu := func(n string, instances string, gpu string) string {
		return "  a: {instances: " + instances + ", dockerImage: img, resourcePerInstance: {cpu: " + n + ", memoryMB: 64, gpu: " + gpu + "}, commands: [a]}\n"
	}
	for name, c := range map[string]struct{ roles, rest, message, remedy string }{
		"a task that is larger than a machine":   {cpu("64", "1", "0"), "", "a task of a needs 64 CPU cells, but no machine has more than 15 (each has cpu 1 and 4096 MB); nor can it take its share of GPUs instead, which is 16 GPUs per task", "request less per task, and more instances"},
		"a task that asks for CPU cells by name": {cpu("16", "1", "0"), "extras: {hivedScheduler: {taskRoles: {a: {skuType: CPU}}}}\n", "a task of a needs 16 CPU cells, but no machine has more than 15 (each has cpu 1 and 4096 MB)", "request less per task, and more instances, or name machines with GPUs by skuType"},
		"more than the virtual cluster owns":     {cpu("10", "40", "0"), "", "the job needs 400 CPU cells at the same time, but the virtual cluster default owns 30; nor can it take its share of GPUs instead, which is 3 GPUs per task", "request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"},
		"a share that is larger than a machine": {cpu("64", "1", "0"), inSmall, "a task of a needs the machine's share of 16 GPUs, but no machine has more than 4 (each has cpu 4 and 32768 MB); it holds GPUs because the virtual cluster small owns no machines without GPUs",
			"request less per task, and more instances; or ask an administrator for machines without GPUs (paictl vc set small --cells TYPE=N)"},
		"a share that is larger than the virtual cluster": {cpu("4", "5", "0"), inSmall, "the job needs the share of 5 GPUs at the same time, but the virtual cluster small owns 4; tasks without GPUs hold the share that corresponds to their processors and memory, because the virtual cluster small owns no machines without GPUs",
			"request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo; or ask an administrator for machines without GPUs (paictl vc set small --cells TYPE=N)"},
		"GPUs of machines without":      {worker("a", 1, 1), "extras: {hivedScheduler: {taskRoles: {a: {skuType: CPU}}}}\n", "machines of the type CPU have no GPUs, but a requests 1 GPU", "write gpu: 0, or a type with GPUs"},
		"GPUs in a pinned cell without": {worker("a", 1, 1), "extras: {hivedScheduler: {taskRoles: {a: {pinnedCellId: prep}}}}\n", "the pinned cell prep has no GPUs, but a requests 1 GPU", "write gpu: 0, or remove pinnedCellId"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Render(job(t, c.roles, c.rest), withCPUs())
			require.Len(t, findings.Errors(), 1)
			assert.Equal(t, c.message, findings[0].Message)
			assert.Equal(t, c.remedy, findings[0].Remedy)
		})
	}
	o := withCPUs()
	o.Cluster.SKUs = map[string]SKU{"CPU": o.Cluster.SKUs["CPU"]}
	o.Cluster.VirtualClusters = map[string]VirtualCluster{"default": {Cells: map[string]int{"CPU": 30}}}
	_, findings := Render(job(t, worker("a", 1, 1), ""), o)
	require.Len(t, findings.Errors(), 1)
	assert.Equal(t, "the cluster has no GPUs", findings[0].Message)
}

func TestAGangThatNoAnnotationHoldsIsRefused(t *testing.T) {
	o := withCPUs()
	o.Cluster.SKUs["CPU"] = SKU{MilliCPU: 1000, MemoryMB: 4 << 10, PerNode: 255}
	vc := o.Cluster.VirtualClusters["default"]
	vc.Cells["CPU"] = 100 * 255
	o.Cluster.VirtualClusters["default"] = vc
	const roles = "  a: {instances: 100, dockerImage: img, resourcePerInstance: {cpu: 255, memoryMB: 64, gpu: 0}, commands: [a]}\n"
	_, findings := Render(job(t, roles, ""), o)
	require.Len(t, findings.Errors(), 1)
	assert.Contains(t, findings[0].Message, "the placements of all tasks of the gang need ")
	assert.Contains(t, findings[0].Message, " KiB or more in each task's annotations, but the limit is 240 KiB")
	assert.Contains(t, findings[0].Remedy, "gangAllocation: false")
	mustRender(t, job(t, roles, "extras: {gangAllocation: false}\n"), o)
}

func TestALargeGangFitsWhereGPUsStandOnClaims(t *testing.T) {
	o := options()
	o.Cluster.VirtualClusters = map[string]VirtualCluster{"default": {Cells: map[string]int{"A100": 100_000}}}
	o.Cluster.SKUs = map[string]SKU{"A100": {GPU: 1, MilliCPU: 1000, MemoryMB: 1 << 10, PerNode: 8}}
	const roles = "  a: {instances: 9000, dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 8}, commands: [a]}\n"
	_, findings := Render(job(t, roles, ""), o)
	require.Error(t, findings.Err(), "in annotations there is no room for it")
	o.Cluster.Claims = true
	mustRender(t, job(t, roles, ""), o)
	_, findings = Render(job(t, roles+"  b: {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: [a]}\n", ""), o)
	require.Error(t, findings.Err(), "a task without GPUs has no claim")
}

func TestCPUCellsCostNoQuotaOfGPUs(t *testing.T) {
	o := withCPUs()
	vc := o.Cluster.VirtualClusters["default"]
	vc.PerUser = 1
	o.Cluster.VirtualClusters["default"] = vc
	mustRender(t, job(t, worker("a", 4, 0), ""), o)
}

// demo returns the options for the cluster that hack/demo.sh makes on three hosts. Its two workers have two processors and eight simulated GPUs
// each.
func demo() Options {
	return Options{User: "alice", Cluster: Cluster{
		RuntimeImage: "pai-runtime", SchedulerName: "pai-scheduler",
		VirtualClusters: map[string]VirtualCluster{"default": {Cells: map[string]int{"SIM-A100": 16}}},
		SKUs:            map[string]SKU{"SIM-A100": {GPU: 1, MilliCPU: 241, MemoryMB: 2900, PerNode: 8}},
	}}
}

func TestTheExamplesFitOnTheDemo(t *testing.T) {
	files, err := filepath.Glob("../../../../examples/jobs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			j, findings := protocol.Parse(file, data)
			require.NoError(t, findings.Err())
			o := demo()
			out, findings := Render(j, o)
			require.NoError(t, findings.Err())
			for i, role := range out.Framework.Spec.TaskRoles {
				if j.Roles[i].GPU == 0 {
					assert.Contains(t, role.Task.Pod.Annotations[annotation.SpecKey], "leafCellNumber: 1\n", "a task without GPUs takes the place of one")
				}
			}
		})
	}
}
