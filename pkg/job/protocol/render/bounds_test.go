package render

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A task without limits could take all memory and processors of its machine, and /dev/shm is memory, too.
func TestEachTaskHasLimits(t *testing.T) {
	unknown := options()
	unknown.Cluster.SKUs, unknown.Cluster.VirtualClusters = nil, nil
	for _, c := range []struct {
		cpu, memory, gpu, shm int
		options               Options
		want                  string
	}{
		{4, 1024, 1, 0, options(), "cpu 4 of 4, memory 1Gi of 1Gi, shm 512Mi"},
		{0, 0, 1, 0, options(), "cpu 4 of 0, memory 32Gi of 0, shm 512Mi"},
		{0, 0, 4, 65536, options(), "cpu 16 of 0, memory 128Gi of 0, shm 64Gi"},
		{2, 0, 1, 0, options(), "cpu 2 of 2, memory 32Gi of 0, shm 512Mi"},
		{0, 128, 0, 0, options(), "cpu 4 of 0, memory 128Mi of 128Mi, shm 128Mi"},
		{1, 64, 0, 64, options(), "cpu 1 of 1, memory 64Mi of 64Mi, shm 64Mi"},
		{0, 0, 0, 0, unknown, "cpu 2 of 0, memory 4Gi of 0, shm 512Mi"},
	} {
		role := fmt.Sprintf("  a: {dockerImage: img, resourcePerInstance: {cpu: %d, memoryMB: %d, gpu: %d}, extraContainerOptions: {shmMB: %d}, commands: [a]}\n", c.cpu, c.memory, c.gpu, c.shm)
		pod := mustRender(t, job(t, role, ""), c.options).Framework.Spec.TaskRoles[0].Task.Pod.Spec
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			limits, requests := container.Resources.Limits, container.Resources.Requests
			of := func(request, limit string) string {
				if request == "" {
					return limit // as Kubernetes fills it in
				}
				return request
			}
			cpu, memory := "", ""
			if q, there := requests["cpu"]; there {
				cpu = q.String()
			}
			if q, there := requests["memory"]; there {
				memory = q.String()
			}
			shm := pod.Volumes[1].EmptyDir.SizeLimit.String()
			assert.Equal(t, c.want, fmt.Sprintf("cpu %s of %s, memory %s of %s, shm %s", limits.Cpu(), of(cpu, limits.Cpu().String()), limits.Memory(), of(memory, limits.Memory().String()), shm))
		}
	}
}

func TestSharedMemoryIsAPartOfTheMemory(t *testing.T) {
	for _, c := range []struct {
		memory, shm int
		want        string
	}{
		{1024, 1025, "/dev/shm of a has 1025 MB, and is a part of its memory, which has 1024 MB"},
		{0, 20000000, "/dev/shm of a has 20000000 MB, and is a part of its memory, which has 32768 MB"},
	} {
		role := fmt.Sprintf("  a: {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: %d, gpu: 1}, extraContainerOptions: {shmMB: %d}, commands: [a]}\n", c.memory, c.shm)
		out, findings := Render(job(t, role, ""), options())
		assert.Nil(t, out)
		require.Len(t, findings, 1)
		assert.Equal(t, c.want, findings[0].Message)
		assert.Equal(t, "job/range", findings[0].Rule)
		assert.Equal(t, 7, findings[0].Line)
		assert.Contains(t, findings[0].Remedy, fmt.Sprintf("memoryMB: %d or more", c.shm))
	}
}
