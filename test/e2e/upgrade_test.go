package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJobsSurviveAnUpgrade creates a cluster with an older version of paictl, and then upgrades it to the current version while jobs run and wait.
// PAICTL_UPGRADE_FROM is a folder that hack/former.sh has created, with bin/paictl and bundle. "make test-hosts" sets it if the history of git contains
// an older version.
func TestJobsSurviveAnUpgrade(t *testing.T) {
	former := os.Getenv("PAICTL_UPGRADE_FROM")
	if former == "" {
		t.Skip("it takes an older version in PAICTL_UPGRADE_FROM: make test-hosts builds one by hack/former.sh, if the history of git has one")
	}
	newer, newBundle := paictl, bundle
	paictl, bundle = filepath.Join(former, "bin", "paictl"), filepath.Join(former, "bundle")
	t.Cleanup(func() { paictl, bundle = newer, newBundle })
	j := newJobs(t)
	for i := range 3 {
		name := fmt.Sprintf("runs%d", i)
		j.submit(t, jobFile(t, fmt.Sprintf(sleeper, name, 1, 8)))
		j.is(t, name, "running")
	}
	j.submit(t, jobFile(t, fmt.Sprintf(sleeper, "half", 1, 4)))
	j.is(t, "half", "running")
	// This is the order of submission, which differs from the order of the names.
	for _, name := range []string{"waits-z", "waits-a"} {
		j.submit(t, jobFile(t, fmt.Sprintf(sleeper, name, 1, 8)))
		j.is(t, name, "queued")
		submitted := time.Now() // Kubernetes' times have whole seconds
		eventually(t, time.Minute, "a second has passed", func() bool { return time.Since(submitted) > time.Second })
	}
	before, starts := j.pods(""), j.starts()
	require.Len(t, before, 6)

	paictl, bundle = newer, newBundle
	// The newer version reports the tag in this way if it was built with a version.
	file := filepath.Join(j.cluster, "services-configuration.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(read(t, file), ownTag(t, filepath.Join(former, "bundle")), ownTag(t, bundle))), 0o600))
	begun := time.Now()
	up := j.up(0)
	t.Logf("cluster up: %+v", up)
	j.push()
	done := j.start(0)
	t.Logf("service start: %+v, %s after cluster up began", done, time.Since(begun).Round(time.Second))
	eventually(t, time.Minute, "the scheduler leads", func() bool { return j.api("/v1/virtualclusters") != "" })
	assert.Equal(t, before, j.pods(""), "each pod is where it was, with its GPUs")
	assert.Equal(t, starts, j.starts(), "no container has started again")
	assert.Equal(t, 28, j.virtualCluster("default").Used, "the new scheduler knows what runs")
	queue := ok(t, j.args("job", "queue")...).stdout
	z, a := strings.Index(queue, "waits-z"), strings.Index(queue, "waits-a")
	assert.True(t, z > 0 && z < a, "those that wait have their places: %s", queue)

	// A job that is submitted now runs at the same time as the running jobs, on other GPUs.
	j.submit(t, jobFile(t, fmt.Sprintf(sleeper, "small", 1, 4)))
	j.is(t, "small", "running")
	users := map[string]string{}
	for _, p := range j.pods("") {
		for device := range strings.SplitSeq(p.Devices, ",") {
			if at := p.Node + "/" + device; p.Devices != "" {
				assert.Empty(t, users[at], "%s has %s, too", p.Name, at)
				users[at] = p.Name
			}
		}
	}
	assert.Len(t, users, 32)
	files := j.kubectl("-n pai-jobs exec " + j.podsOf(t, "small")[0].Name + " -c app -- sh -c 'cd /dev; ls -d nvidia[0-9]*'")
	t.Logf("small, with a claim, is beside half, without one: it has %v", strings.Fields(files))
	assert.Len(t, strings.Fields(files), 4)

	ok(t, j.job("stop", "runs1")...)
	j.is(t, "waits-z", "running")
	assert.Equal(t, "queued", j.state(t, "waits-a"))
	ok(t, j.job("stop", "runs0")...)
	j.is(t, "waits-a", "running")
	for _, name := range []string{"runs2", "half", "small", "waits-z", "waits-a"} {
		assert.Equal(t, "running", j.state(t, name), name)
	}
}

// ownTag returns the tag of paictl's own images in a bundle.
func ownTag(t testing.TB, bundle string) string {
	t.Helper()
	_, after, found := strings.Cut(read(t, filepath.Join(bundle, "manifest.yaml")), "/pai-scheduler:")
	require.True(t, found)
	tag, _, _ := strings.Cut(after, "\n")
	return tag
}

// starts returns the start times of the containers in the pods of jobs.
func (j *jobs) starts() string {
	j.t.Helper()
	return j.kubectl(`-n pai-jobs get pods -o jsonpath='{range .items[*]}{.metadata.uid} {range .status.containerStatuses[*]}{.name} {.restartCount} {.state.running.startedAt} {end}{"\n"}{end}'`)
}

// sleeper is the file of a job. The placeholders are its name, its number of tasks, and the number of GPUs for each task.
const sleeper = `protocolVersion: 2
name: %s
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}
taskRoles:
  main:
    instances: %d
    dockerImage: python
    resourcePerInstance: {cpu: 0.1, memoryMB: 128, gpu: %d}
    commands: ["sleep 3600"]
`
