package render

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestATaskThatTakesMoreGPUsThanItAsksForIsToldSo(t *testing.T) {
	const v100 = "extras: {hivedScheduler: {taskRoles: {w: {skuType: V100}}}}\n"
	for name, one := range map[string]struct{ role, message, remedy, taken string }{
		"for its processors": {"  w: {instances: 2, dockerImage: img, resourcePerInstance: {cpu: 9, memoryMB: 1024, gpu: 2}, commands: [a]}\n",
			"a task of w asks for 2 GPUs and takes 3: cpu 9 is the machine's share of 3 GPUs", "write cpu 8 or less to take 2 GPUs", "6"},
		"for its memory": {"  w: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 40000, gpu: 1}, commands: [a]}\n",
			"a task of w asks for 1 GPU and takes 2: memoryMB 40000 is the machine's share of 2 GPUs", "write memoryMB 32768 or less to take 1 GPU", "2"},
		"for both": {"  w: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: 5, memoryMB: 40000, gpu: 1}, commands: [a]}\n",
			"a task of w asks for 1 GPU and takes 2: cpu 5 and memoryMB 40000 are the machine's share of 2 GPUs", "write cpu 4 and memoryMB 32768 or less to take 1 GPU", "2"},
		"for neither":                       {worker("w", 2, 2), "", "", ""},
		"one without GPUs asks for no GPUs": {worker("w", 2, 0), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, found := Render(job(t, one.role, v100), options())
			require.NoError(t, found.Err())
			assert.Equal(t, one.taken, out.Framework.Annotations[v1.AnnotationGPUsTaken])
			if one.message == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, strictyaml.Warning, found[0].Severity)
			assert.Equal(t, one.message, found[0].Message)
			assert.Equal(t, one.remedy, found[0].Remedy)
			assert.Positive(t, found[0].Line)
		})
	}
	o := options()
	o.Cluster.SchedulerName = ""
	out, found := Render(job(t, "  w: {instances: 2, dockerImage: img, resourcePerInstance: {cpu: 9, memoryMB: 1024, gpu: 2}, commands: [a]}\n", ""), o)
	assert.Empty(t, found, "without a scheduler of GPUs there are no shares")
	assert.NotContains(t, out.Framework.Annotations, v1.AnnotationGPUsTaken)
}

func TestInfiniBandIsRefusedIfNoMachinePublishesIt(t *testing.T) {
	const role = "  w: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}, commands: [a], extraContainerOptions: {infiniband: true}}\n"
	o := options()
	out, found := Render(job(t, role, ""), o)
	require.NoError(t, found.Err())
	devices := out.Framework.Spec.TaskRoles[0].Task.Pod.Spec.Containers[0].Resources.Limits[ResourceRDMA]
	assert.Equal(t, int64(1), devices.Value())
	o.Cluster.NoRDMA = true
	_, found = Render(job(t, role, ""), o)
	require.ErrorContains(t, found.Err(), "taskRoles.w.extraContainerOptions.infiniband: no machine of the cluster publishes the resource rdma/hca")
	_, found = Render(job(t, worker("w", 1, 0), ""), o)
	require.NoError(t, found.Err())
}

func TestInfiniBandIsRefusedIfNoMachineOfItsTypePublishesIt(t *testing.T) {
	role := func(gpu int) string {
		return fmt.Sprintf("  w: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: %d}, commands: [a], extraContainerOptions: {infiniband: true}}\n", gpu)
	}
	hived := func(sku string) string { return "extras: {hivedScheduler: {taskRoles: {w: {skuType: " + sku + "}}}}\n" }
	o := options()
	o.Cluster.SKUs = map[string]SKU{"A100": {GPU: 1, PerNode: 8}, "V100": {GPU: 1, PerNode: 8, NoRDMA: true}, "CPU": {PerNode: 8, NoRDMA: true}}
	o.Cluster.VirtualClusters = map[string]VirtualCluster{"default": {Cells: map[string]int{"A100": 8, "V100": 8, "CPU": 8}}}
	_, found := Render(job(t, role(1), hived("A100")), o)
	require.NoError(t, found.Err())
	_, found = Render(job(t, role(1), ""), o)
	require.NoError(t, found.Err(), "it may run on the A100")
	_, found = Render(job(t, role(0), ""), o)
	require.NoError(t, found.Err(), "it may run on a share of an A100")
	_, found = Render(job(t, role(1), hived("V100")), o)
	require.ErrorContains(t, found.Err(), "no machine of the type V100 publishes the resource rdma/hca")
	assert.Contains(t, found.Errors()[0].Remedy, "request another type: A100")
	o.Cluster.VirtualClusters = map[string]VirtualCluster{"default": {Cells: map[string]int{"V100": 8, "CPU": 8}}}
	_, found = Render(job(t, role(1), ""), o)
	require.ErrorContains(t, found.Err(), "no machine of the type V100 publishes", "its virtual cluster owns nothing else")
	_, found = Render(job(t, role(1), "extras: {hivedScheduler: {jobPriorityClass: oppo}}\n"), o)
	require.NoError(t, found.Err(), "it may use the GPUs of others")
}

func TestGPUsThatNoMachinePublishesAreRefusedWithoutASchedulerOfThem(t *testing.T) {
	o, most := options(), 0
	o.Cluster.SchedulerName, o.Cluster.SKUs, o.Cluster.VirtualClusters = "", nil, nil
	_, found := Render(job(t, worker("w", 1, 2), ""), o)
	require.NoError(t, found.Err(), "the nodes are not known")
	o.Cluster.GPUs = &most
	_, found = Render(job(t, worker("w", 1, 2), ""), o)
	require.ErrorContains(t, found.Err(), "no machine of the cluster publishes the resource nvidia.com/gpu, so that the job would wait forever")
	_, found = Render(job(t, worker("w", 1, 0), ""), o)
	require.NoError(t, found.Err())
	most = 1
	_, found = Render(job(t, worker("w", 1, 2), ""), o)
	require.ErrorContains(t, found.Err(), "needs 2 GPUs, but no machine has more than 1")
	most = 2
	_, found = Render(job(t, worker("w", 1, 2), ""), o)
	require.NoError(t, found.Err())
}
