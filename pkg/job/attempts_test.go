package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const twoRoles = `protocolVersion: 2
name: train
type: job
prerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]
taskRoles:
  zebra: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1, ports: {web: 2}}, commands: [sh]}
  Ant: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1}, commands: [sh]}
secrets: {word: "******"}
extras: {hostNetwork: HOST, com.microsoft.pai.runtimeplugin: [{plugin: ssh, taskroles: [zebra], parameters: {userssh: {type: none}}}]}
`

// gone returns a job without a Framework. The job has two attempts, and a task was tried three times in the first attempt.
func gone(t *testing.T, config string) *Detail {
	t.Helper()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	task := func(role, object string, id int32, minute int, code int32, attributes ...v1.CompletionTypeAttribute) api.TaskAttempt {
		run, end := at(minute).Add(10*time.Second), at(minute+1)
		return api.TaskAttempt{Role: role, RoleObject: object, ID: id, PodUID: object + "-uid", Started: at(minute), Run: &run, Completed: &end,
			Completion: &v1.TaskAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: code, Type: v1.CompletionType{Attributes: attributes}}}}
	}
	a := &api.JobDetail{Job: api.Job{User: "ann", Name: "train", UID: "u", Framework: "f"}, Config: config, Attempts: []api.Attempt{
		{ID: 1, Started: at(10), Tasks: []api.TaskAttempt{task("Ant", "ant", 0, 10, 0), task("zebra", "zebra", 0, 10, 0)}},
		{ID: 0, Started: at(0), Tasks: []api.TaskAttempt{task("Ant", "ant", 0, 0, -1000, v1.Transient), task("Ant", "ant", 1, 2, 3), task("Ant", "ant", 2, 4, 3), task("zebra", "zebra", 0, 0, -220)}},
	}}
	return archivedDetail(Past(a))
}

func TestAttemptsOfATaskAreSummedUp(t *testing.T) {
	d := gone(t, strings.ReplaceAll(twoRoles, "HOST", "false"))
	assert.Equal(t, []string{"zebra", "Ant"}, []string{d.Roles[0].Name, d.Roles[1].Name}, "roles are in the order of the job file")
	assert.Equal(t, []string{"zebra", "Ant"}, d.job.RoleNames())

	tasks, ok := d.TasksIn(0)
	require.True(t, ok)
	require.Len(t, tasks, 2, "a task that was tried several times is one")
	for _, role := range []string{"Ant", "ant"} {
		list := d.TaskAttempts(0, role, 0)
		require.Len(t, list, 3, role)
		assert.Equal(t, []int32{2, 1, 0}, []int32{list[0].ID, list[1].ID, list[2].ID}, "the latest is the first")
		assert.Equal(t, list[0], tasks[0])
		assert.Equal(t, int32(2), list[0].Retries)
		assert.Equal(t, int32(1), list[0].Accountable, "what was the platform's fault doesn't count")
		assert.Equal(t, noon, list[0].Begun)
		assert.Equal(t, noon.Add(10*time.Second), *list[0].Ran)
		assert.Equal(t, noon.Add(5*time.Minute), *list[0].Ended)
		assert.Equal(t, Failed, list[0].Phase)
	}
	for _, none := range [][]Task{d.TaskAttempts(0, "Ant", 1), d.TaskAttempts(7, "Ant", 0), d.TaskAttempts(0, "nothing", 0)} {
		assert.Empty(t, none)
	}
	_, ok = d.TasksIn(7)
	assert.False(t, ok)
	assert.Equal(t, "zebra", d.TaskOfPod(0, "zebra-uid").Role)
	assert.Nil(t, d.TaskOfPod(0, "another"))
	assert.Nil(t, d.TaskOfPod(0, ""))
	assert.Nil(t, Culprit(nil, tasks))
	zero := int32(0)
	assert.Equal(t, "Ant", Culprit(&v1.FrameworkAttemptCompletionStatus{Trigger: &v1.CompletionTrigger{TaskRoleName: "ant", TaskIndex: &zero}}, tasks).Role)
}

// The server must not search all tasks again for each UID that a client makes up.
func TestThePodOfALargeJobIsFoundInOnePass(t *testing.T) {
	d := &Detail{Attempts: []api.Attempt{{ID: 0}}, job: &Job{}, earlier: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", Index: 7, ID: 1, PodUID: "first"}}}
	for i := range int32(1000) {
		a := api.TaskAttempt{Role: "worker", RoleObject: "worker", Index: i, ID: 2, PodUID: fmt.Sprint("pod-", i)}
		d.Attempts[0].Tasks = append(d.Attempts[0].Tasks, a)
		d.Tasks = append(d.Tasks, Task{TaskAttempt: a})
	}
	assert.Zero(t, testing.AllocsPerRun(1, func() { d.TaskOfPod(0, "made up") }))
	assert.Nil(t, d.TaskOfPod(0, "made up"))
	assert.Equal(t, int32(999), d.TaskOfPod(0, "pod-999").Index)
	past := d.TaskOfPod(0, "first")
	assert.Equal(t, []int32{7, 1}, []int32{past.Index, past.ID}, "an earlier attempt of a task")
	assert.Nil(t, d.TaskOfPod(1, "pod-1"))
}

func TestPortsAreThoseThatTheRuntimeHandsOut(t *testing.T) {
	own := gone(t, strings.ReplaceAll(twoRoles, "HOST", "false"))
	tasks, _ := own.TasksIn(1)
	assert.Equal(t, map[string][]int{"http": {15000}, "ssh": {15001}, "web": {15002, 15003}}, own.Ports(&tasks[1]))
	assert.True(t, own.AcceptsSSH("zebra"))
	assert.False(t, own.AcceptsSSH("Ant"))

	host := gone(t, strings.ReplaceAll(twoRoles, "HOST", "true"))
	drawn := host.Ports(&tasks[1])
	require.Len(t, drawn["web"], 2)
	assert.NotEqual(t, 15000, drawn["http"][0], "the machine's are drawn, by the pod")
	assert.Equal(t, drawn, host.Ports(&tasks[1]))

	broken := gone(t, "taskRoles: [")
	assert.Empty(t, broken.Ports(&tasks[1]))
	assert.False(t, broken.AcceptsSSH("zebra"))
	assert.Len(t, broken.Roles, 2)

	f := framework(func(f *v1.Framework) {
		f.Spec.TaskRoles[0].Task.Pod.Annotations = map[string]string{v1.AnnotationPorts: `{"schedulePortStart":15000,"schedulePortEnd":40000,"ports":{"ssh":{"count":1},"http":{"count":1}}}`}
	})
	live := liveDetail(Of(f), nil, nil)
	assert.Equal(t, map[string][]int{"http": {15000}, "ssh": {15001}}, live.Ports(&Task{TaskAttempt: api.TaskAttempt{RoleObject: "worker"}}))
	assert.Nil(t, live.Ports(&Task{TaskAttempt: api.TaskAttempt{RoleObject: "gone"}}))
	f.Annotations[v1.AnnotationHostNetwork] = "true"
	assert.Nil(t, live.Ports(&Task{TaskAttempt: api.TaskAttempt{RoleObject: "worker"}}), "without a pod the machine's ports aren't known")
}
