package clients

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// visitor is a client with a person's token.
type visitor struct {
	t     *testing.T
	w     *world
	token string
}

func (w *world) visit(t *testing.T, name string) *visitor {
	t.Helper()
	w.person(name)
	v := &visitor{t: t, w: w}
	_, body := v.ask("POST", "/api/v2/token", `{"username":"`+name+`","password":"`+password+`"}`)
	v.token = text(at(v.json(body), "token"))
	require.NotEmpty(t, v.token)
	return v
}

func (v *visitor) send(method, path, body string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.w.URL+path, strings.NewReader(body))
	require.NoError(v.t, err)
	if v.token != "" && !strings.Contains(path, "/joblogs/") {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	resp, err := v.w.client.Do(r)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (v *visitor) ask(method, path, body string) (int, string) {
	v.t.Helper()
	resp := v.send(method, path, body)
	data, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	return resp.StatusCode, string(data)
}

func (v *visitor) json(body string) (out any) {
	v.t.Helper()
	require.NoError(v.t, json.Unmarshal([]byte(body), &out), body)
	return out
}

// get reads a path, and returns the value at a place of the response.
func (v *visitor) get(path, place string) any {
	v.t.Helper()
	status, body := v.ask("GET", path, "")
	require.Equal(v.t, 200, status, "%s: %s", path, body)
	return at(v.json(body), place)
}

// reaches waits until the value at a place of a response is the given state.
func (v *visitor) reaches(path, place, state string) {
	v.t.Helper()
	require.Eventually(v.t, func() bool { return v.get(path, place) == state }, 2*time.Minute, 100*time.Millisecond, "%s of %s is %s", place, path, state)
}

// file is the file of a job with two roles, in reverse alphabetical order.
const file = `protocolVersion: 2
name: many
type: job
prerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]
taskRoles:
  zebra: {instances: 1, completion: {minSucceededInstances: -1}, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1, ports: {web: 2}}, commands: ['i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo "line $i"; done', 'while [ ! -e GATE.zebra ]; do sleep 0.1; done', 'echo the last line']}
  Ant: {instances: 1, dockerImage: i, taskRetryCount: 1, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1}, commands: ['echo an ant; while [ ! -e GATE.ant ]; do sleep 0.1; done; exit 3']}
defaults: {virtualCluster: vision}
extras: {gangAllocation: false}
secrets: {word: hunter2}
`

// readJobs reads a job while it runs, after its end, and when only the history still contains it.
func readJobs(t *testing.T, w *world) {
	v, gate := w.visit(t, "reader"), w.Gates+"/gate"
	status, body := v.ask("POST", "/api/v2/jobs", strings.ReplaceAll(file, "GATE", gate))
	require.Equal(t, 202, status, body)
	const job = "/api/v2/jobs/reader~many"
	const task = job + "/attempts/0/taskRoles/zebra/taskIndex/0/attempts/0"
	v.reaches(job, "taskRoles.zebra.taskStatuses.0.taskState", "RUNNING")
	assert.Equal(t, "zebra", v.get(job+"/pods", "items.0.taskRoleName"))
	assert.Equal(t, "Running", v.get(job+"/pods", "items.0.phase"))
	assert.NotEmpty(t, v.get(job+"/why", "sentence"))

	// The client reads the log while it is being written.
	resp := v.send("GET", task+"/logs/all?follow=true", "")
	require.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, "text/plain; charset=utf-8", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != "line 4000" {
	}
	link := func(path, name string) string {
		for i := range 3 {
			place := "locations." + string(rune('0'+i))
			if v.get(path, place+".name") == name {
				return text(v.get(path, place+".uri"))
			}
		}
		return ""
	}
	_, end := v.ask("GET", link(task+"/logs?tail-mode=true", "stdout"), "")
	assert.Len(t, end, 16384, "the end of a log is 16 KiB")
	assert.True(t, strings.HasSuffix(end, "line 4000\n"))
	_, whole := v.ask("GET", link(task+"/logs", "all"), "")
	assert.True(t, strings.HasPrefix(whole, "line 1\nline 2\n"))
	assert.Equal(t, 4000, strings.Count(whole, "\n"))
	status, body = v.ask("HEAD", link(task+"/logs", "all"), "")
	assert.Equal(t, 200, status)
	assert.Empty(t, body)
	pod := text(v.get(job, "taskRoles.zebra.taskStatuses.0.containerId"))
	_, same := v.ask("GET", link(job+"/attempts/0/pods/"+pod+"/logs", "all"), "")
	assert.Equal(t, whole, same, "by the pod, too")
	status, body = v.ask("GET", task+"/logs/stderr", "")
	assert.Equal(t, 404, status, body)

	require.NoError(t, os.WriteFile(gate+".zebra", nil, 0o600))
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	assert.Equal(t, []string{"the last line"}, rest, "it ends with the program")
	require.NoError(t, os.WriteFile(gate+".ant", nil, 0o600))
	v.reaches(job, "jobStatus.state", "FAILED")

	look := func(when string) {
		t.Helper()
		const ant = job + "/attempts/0/taskRoles/Ant/taskIndex/0/attempts"
		assert.Equal(t, "Ant", v.get(job, "jobStatus.appExitTriggerTaskRoleName"), when)
		assert.Equal(t, "Ant", v.get(ant, "taskRoleName"), when)
		assert.EqualValues(t, 1, v.get(ant, "retries"), when)
		assert.EqualValues(t, 1, v.get(ant, "accountableRetries"), when)
		for i, id := range []int{1, 0} {
			place := "attempts." + string(rune('0'+i))
			assert.EqualValues(t, id, v.get(ant, place+".attemptId"), when)
			assert.Equal(t, "FAILED", v.get(ant, place+".attemptState"), when)
			assert.Equal(t, "RETRY_TO_MAX", v.get(ant, place+".containerExitSpec.reaction"), when)
			_, log := v.ask("GET", link(text(v.get(ant, place+".containerLog")), "all"), "")
			assert.Regexp(t, `^an ant\n\[pai-runtime\] failed with exit code 255, `, log, "%s: the log of attempt %v", when, id)
		}
		assert.Less(t, v.get(ant, "createdTime"), v.get(ant, "attempts.0.currentAttemptCreatedTime"), when)
		assert.Equal(t, "15002,15003", v.get(job, "taskRoles.zebra.taskStatuses.0.containerPorts.web"), when)
		_, body := v.ask("GET", job, "")
		assert.Contains(t, body, `"taskRoles":{"zebra":`, "%s: roles are in the order of the job file", when)
		assert.NotContains(t, body, "hunter2", when)
		_, log := v.ask("GET", link(task+"/logs", "all"), "")
		assert.True(t, strings.HasSuffix(log, "the last line\n"), when)
	}
	look("after its end")
	status, body = v.ask("DELETE", job, "")
	require.Equal(t, 200, status, body)
	assert.Contains(t, body, "Delete job reader~many successfully.")
	look("when the history alone has it")
	assert.Equal(t, []any{}, v.get(job+"/pods", "items"))
	assert.Equal(t, "many", v.get(job+"/config", "name"))
	status, body = v.ask("DELETE", job+"?history=true", "")
	require.Equal(t, 200, status, body)
	status, body = v.ask("GET", job, "")
	assert.Equal(t, 404, status, body)
}
