package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// TestJobs runs every example of examples/jobs in real containers, on four machines that simulate eight GPUs each. Then it causes failures of jobs.
// Each failure must result in a state and an explanation.
func TestJobs(t *testing.T) {
	j := newJobs(t)
	t.Run("examples", j.examplesEndAsTheySay)
	t.Run("submit to first line", func(t *testing.T) { j.startsSoon(t, 1) })
	t.Run("without volumes of images", j.copiesItsRuntime)
	t.Run("GPUs", j.seeTheirGPUsAndNoOthers)
	t.Run("status", j.areSeenAtALook)
	t.Run("access", j.isReachable)
	t.Run("rights", j.mayDoLittle)
	t.Run("failures", j.failuresAreExplained)
	t.Run("people", j.shareIt)
	t.Run("providers of sign-ins", j.signInByProviders)
}

// examplesEndAsTheySay runs all files of examples/jobs. New files must be added to its table.
func (j *jobs) examplesEndAsTheySay(t *testing.T) {
	tests := []struct {
		file  string
		check func(*testing.T, string)
	}{
		{"hello", func(t *testing.T, name string) {
			j.submit(t, example(t, name), "--watch", "--timeout", "3m")
			assert.Contains(t, j.log(t, name), "Hello ann, this is main-0 of ann~hello")
			j.ended(t, name, "succeeded", "Succeeded")
		}},
		{"two-roles", func(t *testing.T, name string) {
			j.submit(t, example(t, name))
			j.ended(t, name, "succeeded", "")
			log := j.log(t, name)
			assert.Contains(t, log, "found the server by name: greetings from the server")
			assert.Contains(t, log, "found the server by environment: greetings from the server")
		}},
		{"rendezvous", func(t *testing.T, name string) {
			j.submit(t, example(t, name))
			j.ended(t, name, "succeeded", "Succeeded")
			for rank := range 4 {
				assert.Contains(t, j.log(t, name), fmt.Sprintf("rank %d of 4: the sum of all is 10", rank))
			}
		}},
		{"sweep", func(t *testing.T, name string) {
			j.submit(t, example(t, name))
			j.ended(t, name, "succeeded", "Succeeded")
			for _, line := range []string{"rate 0.9: ", "rate 0.1: x = 3.0000, loss = 0.0000", "rate 0.01: ", "rate 0.001: "} {
				assert.Contains(t, j.log(t, name), line)
			}
		}},
		{"gpu", j.usesAMachineOfGPUs},
		{"waits", j.waitsForGPUs},
		{"opportunistic", j.givesWay},
		{"retry", j.retries},
		{"syntax-error", func(t *testing.T, name string) {
			j.submit(t, example(t, name))
			f := j.ended(t, name, "failed", "ContainerSyntaxError")
			assert.Zero(t, f.Status.RetryPolicyStatus.TotalRetriedCount, "three retries were allowed, and none would have helped")
			assert.Contains(t, j.why(t, name), "SyntaxError: expected ':'")
		}},
		{"out-of-memory", func(t *testing.T, name string) {
			j.submit(t, example(t, name))
			f := j.ended(t, name, "failed", "")
			assert.Zero(t, f.Status.RetryPolicyStatus.TotalRetriedCount)
			assert.Contains(t, strings.ToLower(j.why(t, name)), "memory")
			assert.Contains(t, j.log(t, name), "holding 16 MB")
		}},
		{"checkpoint", j.goesOnFromItsCheckpoint},
		{"secrets", j.keepsItsSecret},
		{"storage", func(t *testing.T, name string) {
			var lines [2]int
			// The second job requests the storage that the cluster offers to all users. It is the same storage.
			for i, file := range []string{example(t, name), example(t, name, "storages:\n    - name: team\n      mountPath: /data\n", "storages: []\n", "/data", "/mnt/team")} {
				j.submit(t, file)
				j.ended(t, name, "succeeded", "Succeeded")
				_, after, _ := strings.Cut(j.log(t, name), "the file has ")
				_, err := fmt.Sscan(after, &lines[i])
				require.NoError(t, err)
			}
			assert.Equal(t, lines[0]+1, lines[1], "the second reads what the first has left")
			assert.Contains(t, j.log(t, name), "found what was left here:\nann~storage was here")
		}},
		{"code", j.takesAFolderAlong},
	}
	files, err := filepath.Glob("../../examples/jobs/*.yaml")
	require.NoError(t, err)
	assert.Len(t, tests, len(files), "every example is run")
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			j.forget(t, tt.file)
			tt.check(t, tt.file)
		})
	}
	list := ok(t, j.job("list")...)
	for _, tt := range tests {
		assert.Contains(t, list.stdout, tt.file)
	}
}

// usesAMachineOfGPUs checks a job that uses all GPUs of a machine, and leaves the job running.
func (j *jobs) usesAMachineOfGPUs(t *testing.T, name string) {
	j.submit(t, example(t, name), "--set", "seconds=3600")
	j.is(t, name, "running")
	eventually(t, time.Minute, "it has said what it sees", func() bool { return strings.Contains(j.log(t, name), "torchrun") })
	log := j.log(t, name)
	assert.Contains(t, log, "my GPUs: 0,1,2,3,4,5,6,7")
	assert.Contains(t, log, "device file /dev/nvidia0\ndevice file /dev/nvidia1\n", "the agent of its machine has handed them out")
	assert.Contains(t, log, "device file /dev/nvidia7\n")
	assert.Contains(t, log, "processes for torchrun: 8")
	seen := ok(t, j.job("exec", name, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES $PAI_CURRENT_TASK_ROLE_NAME")...)
	assert.Equal(t, "0,1,2,3,4,5,6,7 train", strings.TrimSpace(seen.stdout))
}

// seeTheirGPUsAndNoOthers runs tasks that use only some of the GPUs of their machines. A task gets at least as many GPUs as it requests, and more if
// it takes a larger share of the processors. The test reads the GPUs of each task inside its container.
func (j *jobs) seeTheirGPUsAndNoOthers(t *testing.T) {
	const name = "shares"
	j.forget(t, name)
	j.submit(t, jobFile(t, `protocolVersion: 2
name: shares
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: docker.io/openpai/examples-python:3}
taskRoles:
  some:
    instances: 2
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 2}
    commands: [sleep 3600]
  one:
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 1}
    commands: [sleep 3600]
  none:
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: [sleep 3600]
`))
	j.is(t, name, "running")
	users := map[string]string{}
	for _, p := range j.podsOf(t, name) {
		out := j.kubectl("-n pai-jobs exec " + p.Name + " -c app -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES; cd /dev; ls -d nvidia[0-9]* 2>/dev/null || true'")
		numbers, files, _ := strings.Cut(strings.TrimSpace(out), "\n")
		if p.Labels["FC_TASKROLE_NAME"] == "none" {
			assert.Empty(t, files)
			continue
		}
		var seen []string
		for _, file := range strings.Fields(files) {
			seen = append(seen, strings.TrimPrefix(file, "nvidia"))
			gpu := p.Spec.NodeName + " " + file
			assert.Empty(t, users[gpu], "%s has %s, too", p.Name, gpu)
			users[gpu] = p.Name
		}
		assert.ElementsMatch(t, strings.Split(numbers, ","), seen, p.Name)
		assert.GreaterOrEqual(t, len(seen), map[string]int{"some": 2, "one": 1}[p.Labels["FC_TASKROLE_NAME"]])
		assert.Less(t, len(seen), 8, "others of its machine are not there")
	}
	reserved := func() []string {
		return strings.Fields(j.kubectl(`-n pai-jobs get resourceclaims -o jsonpath='{.items[*].status.reservedFor[*].name}'`))
	}
	assert.Len(t, reserved(), 3, "a claim for each task with GPUs")
	ok(t, j.job("stop", name)...)
	j.ended(t, name, "stopped", "")
	// The pods of completed tasks remain for some time, but don't keep their GPUs.
	eventually(t, time.Minute, "the claims are given back", func() bool { return len(reserved()) == 0 })
}

// waitsForGPUs begins while the job gpu uses one of the four machines. It ends the job gpu.
func (j *jobs) waitsForGPUs(t *testing.T, name string) {
	j.submit(t, example(t, name, "instances: 2", "instances: 4"))
	j.is(t, name, "queued")
	why := j.why(t, name)
	assert.Contains(t, why, "GPU", "what it waits for")
	assert.Contains(t, why, "gpu", "who has it")
	assert.Contains(t, ok(t, j.args("job", "queue")...).stdout, name)
	for _, p := range j.podsOf(t, name) {
		assert.Empty(t, p.Spec.NodeName, "a gang that waits holds no machine")
	}
	ok(t, j.job("stop", "gpu")...)
	j.ended(t, "gpu", "stopped", "")
	j.ended(t, name, "succeeded", "Succeeded")
	for rank := range 4 {
		assert.Contains(t, j.log(t, name), fmt.Sprintf("node rank %d of world size 32, GPUs 0,1,2,3,4,5,6,7", rank))
	}
}

// givesWay runs a job that uses all GPUs without a guarantee. A job with a guarantee then takes the GPUs that it needs.
func (j *jobs) givesWay(t *testing.T, name string) {
	j.forget(t, "gpu")
	j.submit(t, example(t, name, "instances: 2", "instances: 4"))
	j.is(t, name, "running")
	eventually(t, time.Minute, "it works", func() bool { return strings.Contains(j.log(t, name), "this is attempt 0") })
	j.submit(t, example(t, "gpu"))
	j.is(t, "gpu", "running")
	j.is(t, name, "queued")
	why := j.why(t, name)
	assert.Contains(t, why, "reempt", "why its first attempt ended")
	assert.Contains(t, why, "gpu", "who has what it waits for")
	assert.Contains(t, ok(t, j.job("logs", name, "--attempt", "0")...).stdout, "told to give way", "SIGTERM reached the program")
	ok(t, j.job("stop", "gpu")...)
	f := j.ended(t, name, "succeeded", "Succeeded")
	assert.Equal(t, int32(1), f.Status.RetryPolicyStatus.TotalRetriedCount)
	assert.Zero(t, f.Status.RetryPolicyStatus.AccountableRetriedCount, "giving way is not the job's fault")
	assert.Contains(t, j.log(t, name), "this is attempt 1")
}

func (j *jobs) retries(t *testing.T, name string) {
	j.submit(t, example(t, name))
	f := j.ended(t, name, "succeeded", "Succeeded")
	assert.Equal(t, int32(2), f.Status.RetryPolicyStatus.TotalRetriedCount)
	assert.Equal(t, int32(1), f.Status.RetryPolicyStatus.AccountableRetriedCount, "a kill from outside is not the job's fault")
	assert.Contains(t, j.log(t, name), "this is attempt 2\nthird time lucky")
	for attempt := range 2 {
		old := ok(t, j.job("logs", name, "--attempt", fmt.Sprint(attempt))...)
		assert.Contains(t, old.stdout, fmt.Sprintf("this is attempt %d", attempt), "its pod is gone, its log is kept")
	}
}

func (j *jobs) goesOnFromItsCheckpoint(t *testing.T, name string) {
	j.submit(t, example(t, name), "--set", "steps=200")
	eventually(t, 2*time.Minute, "it works", func() bool { return strings.Contains(j.log(t, name), "\nstep ") })
	ok(t, j.job("stop", name)...)
	j.ended(t, name, "stopped", "")
	var saved int
	log := j.log(t, name)
	_, after, found := strings.Cut(log, "saved step ")
	require.True(t, found, "SIGTERM reached the program: %s", log)
	_, err := fmt.Sscan(after, &saved)
	require.NoError(t, err)

	j.submit(t, example(t, name), "--set", "steps=200")
	j.ended(t, name, "succeeded", "Succeeded")
	log = j.log(t, name)
	assert.Contains(t, log, fmt.Sprintf("resumed at step %d\n", saved))
	assert.Contains(t, log, "\ndone")
}

func (j *jobs) keepsItsSecret(t *testing.T, name string) {
	const token = `open<sesame>&"$HOME"#4711`
	j.submit(t, example(t, name))
	j.ended(t, name, "succeeded", "Succeeded")
	assert.Contains(t, j.log(t, name), fmt.Sprintf("the token has %d characters", len(token)))
	object := v1.ObjectName("ann", name)
	stored := j.kubectl("-n pai-jobs get frameworks,pods,configmaps,serviceaccounts,events -o yaml")
	require.Contains(t, stored, object)
	shown := func() string {
		return ok(t, j.job("get", name, "-o", "json")...).stdout + ok(t, j.job("get", name, "--config")...).stdout + j.why(t, name)
	}
	live := shown()
	j.forget(t, name)
	for _, text := range []string{stored, live, shown()} {
		assert.NotContains(t, text, "sesame")
	}
}

func (j *jobs) takesAFolderAlong(t *testing.T, name string) {
	dir := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/jobs/code")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.log"), []byte("stays at home"), 0o600))
	j.submit(t, example(t, name), "--code", dir)
	j.ended(t, name, "succeeded", "Succeeded")
	log := j.log(t, name)
	assert.Contains(t, log, "epoch 3: loss 0.141")
	assert.NotContains(t, log, "old.log")
}

// jobs is a cluster that runs jobs. Its four workers simulate eight GPUs each, and belong to the virtual cluster default. The storage "team" is on
// the first worker.
type jobs struct{ *gpus }

func newJobs(t testing.TB) *jobs {
	t.Helper()
	g := newGPUs(t)
	g.set("scheduler", map[string]any{"virtualClusters": map[string]any{"default": map[string]any{
		"virtualCells": []any{map[string]any{"cellType": g.cellType, "cellNumber": 4}},
		"quota":        map[string]any{"users": map[string]any{"eve": 2}},
	}}})
	g.set("storage", map[string]any{"local": map[string]any{"volumes": []any{map[string]any{
		"claim": "team", "namespace": "pai-jobs", "node": g.names[1], "path": "/srv/jobs/team", "owner": 1000, "size": "1Gi", "default": true,
	}}}})
	g.push()
	g.start(0, "-n", "scheduler", "-n", "storage", "-n", "job-controller")
	eventually(g.t, time.Minute, "the scheduler leads", func() bool { return g.api("/v1/virtualclusters") != "" })
	return &jobs{g}
}

// example returns the path of an example. If texts are to be replaced, it returns the path of a changed copy.
func example(t testing.TB, name string, replace ...string) string {
	t.Helper()
	path := filepath.Join("../../examples/jobs", name+".yaml")
	if len(replace) == 0 {
		return path
	}
	changed := jobFile(t, read(t, path))
	for i := 0; i < len(replace); i += 2 {
		edit(t, changed, replace[i], replace[i+1])
	}
	return changed
}

// jobFile writes a text to a job file, and returns the path of the file.
func jobFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// job returns the arguments of a command about ann's jobs.
func (j *jobs) job(verb string, args ...string) []string {
	return append(j.args("job", verb, "--user", "ann"), args...)
}

func (j *jobs) submit(t testing.TB, file string, flags ...string) {
	t.Helper()
	// The history still contains the names of deleted jobs, so the submission uses --replace.
	ok(t, j.job("submit", append([]string{file, "--replace"}, flags...)...)...)
}

// forget deletes a job that an earlier run of the test may have left.
func (j *jobs) forget(t testing.TB, name string) {
	t.Helper()
	_ = run(t, j.job("delete", name, "--yes")...)
}

// ended waits for the end of a job, and checks its result. If phrase is "", any phrase is accepted.
func (j *jobs) ended(t testing.TB, name, state, phrase string) *v1.Framework {
	t.Helper()
	_ = run(t, j.job("wait", name, "--timeout", "5m")...)
	assert.Equal(t, state, j.state(t, name), "%s", j.why(t, name))
	f := j.framework(t, name)
	require.NotNil(t, f.Status)
	if c := f.Status.AttemptStatus.CompletionStatus; phrase != "" && assert.NotNil(t, c) {
		assert.Equal(t, phrase, c.Phrase, "%s", c.Diagnostics)
	}
	return f
}

// is waits until a job is in a state.
func (j *jobs) is(t testing.TB, name, state string) {
	t.Helper()
	last := ""
	eventually(t, 2*time.Minute, name+" is "+state, func() bool {
		now := j.state(t, name)
		if now != last {
			t.Logf("%s is %s", name, now)
		}
		last = now
		return now == state
	})
}

// state returns the state of a job in "job get".
func (j *jobs) state(t testing.TB, name string) string {
	t.Helper()
	var job struct{ State string }
	require.NoError(t, json.Unmarshal([]byte(ok(t, j.job("get", name, "-o", "json")...).stdout), &job))
	return job.State
}

// why returns the output of "job why" for a job.
func (j *jobs) why(t testing.TB, name string) string {
	t.Helper()
	r := run(t, j.job("why", name)...)
	return r.stdout + r.stderr
}

// log returns the output of all tasks of a job.
func (j *jobs) log(t testing.TB, name string) string {
	t.Helper()
	return run(t, j.job("logs", name)...).stdout
}

func (j *jobs) framework(t testing.TB, name string) *v1.Framework {
	t.Helper()
	var f v1.Framework
	require.NoError(t, json.Unmarshal([]byte(j.kubectl("-n pai-jobs get framework "+v1.ObjectName("ann", name)+" -o json")), &f))
	return &f
}

func ptr[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
