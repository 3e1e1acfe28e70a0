package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFailedPodsAreUnderstood(t *testing.T) {
	app := func(code int, reason, message string) []Container {
		return []Container{{Name: "init", Reason: "Completed"}, {Name: "app", Code: code, Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		pod    Pod
		want   int
		phrase string
	}{
		"evicted":                       {Pod{Reason: "Evicted", Message: "low on memory"}, -1000, "PodEvicted"},
		"too much on the disk":          {Pod{Reason: "Evicted", Message: "Pod ephemeral local storage usage exceeds the total limit of containers 64Mi. ", Containers: app(137, "Error", "")}, -1010, "PodDiskLimitExceeded"},
		"too much in a container":       {Pod{Reason: "Evicted", Message: `Container app exceeded its local ephemeral storage limit "64Mi". `}, -1010, "PodDiskLimitExceeded"},
		"too much in a volume":          {Pod{Reason: "Evicted", Message: `Usage of EmptyDir volume "shm" exceeds the limit "512Mi". `}, -1010, "PodDiskLimitExceeded"},
		"a full disk":                   {Pod{Reason: "Evicted", Message: "The node was low on resource: ephemeral-storage. Container app was using 9Gi, request is 0, has larger consumption of ephemeral-storage. "}, -1000, "PodEvicted"},
		"evicted, with a container":     {Pod{Reason: "Evicted", Containers: app(137, "Error", "")}, -1000, "PodEvicted"},
		"node lost":                     {Pod{Reason: "NodeLost"}, -1001, "PodNodeLost"},
		"no room":                       {Pod{Reason: "OutOfcpu"}, -1002, "PodScheduledToInsufficientResourceNode"},
		"no device":                     {Pod{Reason: "UnexpectedAdmissionError"}, -1006, "PodNodeAdmissionUnexpectedError"},
		"shut down":                     {Pod{Reason: "Terminated", Message: "Pod was terminated in response to imminent node shutdown."}, -1007, "PodNodeShutdown"},
		"labels changed":                {Pod{Reason: "NodeAffinity"}, -1008, "PodNodeAffinityChanged"},
		"reboot":                        {Pod{Containers: app(137, "ContainerStatusUnknown", "")}, -1009, "ContainerStatusUnknown"},
		"reboot, of containerd 2":       {Pod{Containers: app(255, "Unknown", "the last lines of\nits log")}, -1009, "ContainerStatusUnknown"},
		"255 of a program":              {Pod{Containers: app(255, "Error", "")}, 255, "PAIRuntimeUnknownFailed"},
		"another code, and Unknown":     {Pod{Containers: app(1, "Unknown", "")}, 1, "ContainerUnrecognizedFailed"},
		"out of memory":                 {Pod{Containers: app(137, "OOMKilled", "")}, -1200, "UserContainerDockerOOMKilled"},
		"out of memory, as the log has": {Pod{Containers: app(227, "OOMKilled", "")}, 227, "ContainerMemoryOOMKilled"},
		"out of memory at the start":    {Pod{Containers: []Container{{Name: "init", Code: 137, Reason: "OOMKilled"}}}, -1300, "InitContainerDockerOOMKilled"},
		"a success that met OOM":        {Pod{Reason: "x", Containers: app(0, "OOMKilled", "")}, -300, "PodFailedWithoutFailedContainer"},
		"no such command":               {Pod{Containers: app(128, "StartError", `exec: "foo": executable file not found in $PATH: unknown`)}, -1203, "ContainerDockerStartCmdNotFound"},
		"command of Docker":             {Pod{Containers: app(127, "ContainerCannotRun", "")}, -1203, "ContainerDockerStartCmdNotFound"},
		"must not be executed":          {Pod{Containers: app(128, "StartError", `exec: "/etc": permission denied: unknown`)}, -1202, "ContainerDockerStartCmdPermissionDenied"},
		"GPU not there":                 {Pod{Containers: app(128, "ContainerCannotRun", "nvidia-container-cli: device error: unknown device id: 7: unknown")}, -1205, "ContainerGpuDeviceNotFoundError"},
		"GPU not there, several lines":  {Pod{Containers: app(128, "StartError", "error running hook #0:\nnvidia-container-cli: device error: 7: unknown device: unknown")}, -1205, "ContainerGpuDeviceNotFoundError"},
		"other architecture":            {Pod{Containers: app(128, "StartError", "exec /usr/local/pai/runtime: exec format error")}, -1206, "ContainerImageForOtherArchitecture"},
		"other start error":             {Pod{Containers: app(128, "StartError", "mounting x over y")}, -1204, "ContainerDockerStartUnknownError"},
		"a code of the runtime":         {Pod{Containers: app(236, "Error", "")}, 236, "ContainerNcclTimeout"},
		"a signal":                      {Pod{Containers: app(139, "Error", "")}, 139, "ContainerSigSegvReceived"},
		"hardware, by the runtime":      {Pod{Containers: app(119, "Error", "[PAI_RUNTIME_ERROR_START]\nexitCode: 119")}, 119, "ContainerGpuXidError"},
		"a sick GPU, by the runtime":    {Pod{Containers: app(116, "Error", "[PAI_RUNTIME_ERROR_START]\nexitCode: 116")}, 116, "ContainerGpuFault"},
		"116 of another program":        {Pod{Containers: app(116, "Error", "")}, 116, "ContainerUnrecognizedFailed"},
		"119 of another program":        {Pod{Containers: app(119, "Error", "")}, 119, "ContainerUnrecognizedFailed"},
		"a code that nobody knows":      {Pod{Containers: app(1, "Error", "")}, 1, "ContainerUnrecognizedFailed"},
		"asks to be retried":            {Pod{Containers: app(200, "Error", "")}, 200, "ContainerTransientFailed"},
		"asks to be retried later":      {Pod{Reason: "Evicted", Containers: app(201, "Error", "")}, 201, "ContainerTransientConflictFailed"},
		"asks not to be":                {Pod{Containers: app(210, "Error", "")}, 210, "ContainerPermanentFailed"},
		"nothing failed":                {Pod{}, -300, "PodFailedWithoutFailedContainer"},
		"a negative code of a runtime":  {Pod{Containers: app(-1, "", "")}, -1, "ContainerUnrecognizedFailed"},
		"a success of stand-in's code":  {Pod{Containers: app(256, "", "")}, 256, "ContainerUnrecognizedFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Builtin().ClassifyPod(c.pod)
			assert.Equal(t, c.want, m.Code)
			assert.Equal(t, c.want, m.Rule.Code)
			assert.Equal(t, c.phrase, m.Rule.Phrase)
			assert.Equal(t, c.phrase != "ContainerUnrecognizedFailed", m.Known)
		})
	}
}

func TestTheContainerThatFailedLastDecidesWhereNoRuleDoes(t *testing.T) {
	m := Builtin().ClassifyPod(Pod{Containers: []Container{{Name: "a", Code: 3, Finished: 20}, {Name: "b", Code: 4, Finished: 10}, {Name: "c", Finished: 30}}})
	assert.Equal(t, 3, m.Code)
	assert.Empty(t, m.Rule.Attributes())
}
