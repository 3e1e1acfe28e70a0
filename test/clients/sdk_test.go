package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// seen holds the output of the script for each of its steps.
type seen struct {
	t     *testing.T
	steps map[string]json.RawMessage
}

// get returns the value at a place of a step's output. The place "" is the whole value.
func (s *seen) get(step, place string) any {
	s.t.Helper()
	text, there := s.steps[step]
	require.True(s.t, there, "the script didn't get to %q", step)
	var value any
	require.NoError(s.t, json.Unmarshal(text, &value))
	return at(value, place)
}

// at returns the value at a place of a JSON value. A place is a list of keys that are separated by dots.
func at(value any, place string) any {
	for key := range strings.SplitSeq(place, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			n, err := strconv.Atoi(key)
			switch {
			case err == nil && n < len(v):
				value = v[n]
			case err == nil:
				value = nil
			}
		}
	}
	return value
}

// runSDK runs the script with the SDK, and returns its output.
func runSDK(t *testing.T, w *world, sdk, name string) *seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/sdk.js")
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+w.CA, "SDK="+filepath.Join(sdk, "node_modules/@microsoft/openpai-js-sdk"), "URL="+w.URL, "NAME="+name, "PASSWORD="+password)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	s := &seen{t: t, steps: map[string]json.RawMessage{}}
	for lines := bufio.NewScanner(bytes.NewReader(out.Bytes())); lines.Scan(); {
		var line struct {
			Step string          `json:"step"`
			Seen json.RawMessage `json:"seen"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			s.steps[line.Step] = line.Seen
		}
	}
	require.NoError(t, err, "%s\n%s", out.String(), problems.String())
	return s
}

func TestOpenPAIsClients(t *testing.T) {
	w := newWorld(t)
	t.Run("the JavaScript SDK", func(t *testing.T) { drivenBySDK(t, w) })
	t.Run("a job from its begin to the history", func(t *testing.T) { readJobs(t, w) })
	for _, file := range []string{"vscode.yaml", "nni.yaml", "python.yaml"} {
		t.Run("what is sent in "+file, func(t *testing.T) { replays(t, w, file) })
	}
}

func drivenBySDK(t *testing.T, w *world) {
	t.Helper()
	tier.More(t, "OpenPAI's JavaScript SDK")
	sdk := os.Getenv("PAICTL_TEST_OPENPAI_SDK")
	if sdk == "" {
		t.Skip("PAICTL_TEST_OPENPAI_SDK is not set: make test-more sets it, by hack/openpai-js-sdk.sh")
	}
	w.person("ann")
	s := runSDK(t, w, sdk, "ann")
	for _, c := range []struct {
		step, place string
		want        any
	}{
		{"login", "user", "ann"},
		{"login", "admin", false},
		{"login", "parts", 3.0},
		{"wrong password", "code", "IncorrectPasswordError"},
		{"info", "launcherType", "k8s"},
		{"me", "username", "ann"},
		{"submit", "status", 202.0},
		{"submit", "message", "Update job long for user ann successfully."},
		{"submit twice", "code", "ConflictJobError"},
		{"nothing there", "type", "NoJobError"},
		{"running", "name", "long"},
		{"running", "jobStatus.virtualCluster", "default"},
		{"running", "jobStatus.executionType", "START"},
		{"running", "jobStatus.attemptState", "RUNNING"},
		{"running", "jobStatus.appExitCode", nil},
		{"running", "jobStatus.appTrackingUrl", ""},
		{"running", "taskRoles.Trainer.taskRoleStatus.name", "Trainer"},
		{"running", "taskRoles.Trainer.taskStatuses.0.taskState", "RUNNING"},
		{"running", "taskRoles.Trainer.taskStatuses.0.containerPorts.ssh", "15001"},
		{"running", "taskRoles.Trainer.taskStatuses.0.containerPorts.tensorboard", "15002,15003"},
		{"running", "taskRoles.Trainer.taskStatuses.0.containerLog", "/api/v2/jobs/ann~long/attempts/0/taskRoles/Trainer/taskIndex/0/attempts/0/logs"},
		{"list", "0.name", "long"},
		{"list", "0.totalGpuNumber", 2.0},
		{"list", "0.totalTaskRoleNumber", 2.0},
		{"list with total", "totalCount", 1.0},
		{"list with total", "data.0.state", "RUNNING"},
		{"list of none", "", []any{}},
		{"config", "name", "long"},
		{"config", "extras.submitFrom", "js-sdk"},
		{"attempt", "jobStatus.attemptId", 0.0},
		{"no attempt", "code", "NoJobError"},
		{"task", "taskRoleName", "Trainer"},
		{"task", "attempts.0.attemptState", "RUNNING"},
		{"task by its stripped name", "taskRoleName", "Trainer"},
		{"log", "status", 200.0},
		{"log", "text", "hello from the job\nand more\n"},
		{"names of logs", "", []any{"stdout", "all"}},
		{"end of a log", "text", "hello from the job\nand more\n"},
		{"changed link", "status", 403.0},
		{"no such task", "code", "NoJobError"},
		{"tag", "status", 200.0},
		{"tags", "", []any{"baseline"}},
		{"untag again", "code", "NoTagError"},
		{"events", "data.0.type", "Normal"},
		{"stop", "status", 202.0},
		{"stopped", "jobStatus.state", "STOPPED"},
		{"stopped", "jobStatus.executionType", "STOP"},
		{"stopped", "jobStatus.appExitSpec.type", "USER_STOP"},
		{"start", "code", "ConflictJobError"},
		{"failed", "jobStatus.state", "FAILED"},
		{"failed", "jobStatus.retries", 1.0},
		{"failed", "jobStatus.retryDetails.user", 1.0},
		{"failed", "jobStatus.attemptId", 1.0},
		{"failed", "jobStatus.appExitType", "Failed"},
		{"failed", "jobStatus.appExitTriggerTaskRoleName", "Trainer"},
		{"failed", "jobStatus.appExitSpec.reaction", "RETRY_TO_MAX"},
		{"failed", "jobStatus.appExitMessages.runtime.originUserExitCode", 3.0},
		{"failed", "jobStatus.appExitMessages.launcher", nil},
		{"too large", "jobStatus.state", "FAILED"},
		{"too large", "jobStatus.retries", 0.0},
		{"too large", "jobStatus.appExitSpec.type", "USER_FAILURE"},
		{"too large", "jobStatus.appExitMessages.runtime.matchedUserLogString", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"},
		{"failed", "taskRoles.Trainer.taskStatuses.0.taskState", "FAILED"},
		{"its first attempt", "jobStatus.attemptId", 0.0},
		{"its first attempt", "jobStatus.attemptState", "FAILED"},
		{"its first attempt", "jobStatus.state", "FAILED"},
		{"its attempts", "0.isLatest", true},
		{"its attempts", "0.attemptIndex", 1.0},
		{"its attempts", "1.attemptIndex", 0.0},
		{"its attempts", "1.exitType", "Failed"},
		{"attempts are known", "", "ok"},
		{"application token", "application", true},
		{"logout", "message", "Logout successfully"},
		{"after that", "type", "UnauthorizedUserError"},
		{"link of who left", "status", 403.0},
	} {
		assert.Equal(t, c.want, s.get(c.step, c.place), "%s: %s", c.step, c.place)
	}
	// The lines of the job runtime follow. A line on stdout and a line on stderr may appear in any order.
	assert.Regexp(t, `^hello from the job\nand more\n(?s:.*)the task was stopped; exit code 143\n$`, s.get("log of what was stopped", "text"))
	first := s.get("log of its first attempt", "text")
	assert.Regexp(t, `^(it begins\nthat went wrong\n|that went wrong\nit begins\n)\[pai-runtime\] failed with exit code 255, `, first)
	assert.Regexp(t, `\[pai-runtime\] the program's own exit code is 3\n$`, first)
	assert.Equal(t, "Trainer", firstKey(t, s.steps["running"], "taskRoles"), "clients take the first role as the main one")
	assert.NotEmpty(t, s.get("running", "taskRoles.Trainer.taskStatuses.0.containerIp"))
	assert.NotEmpty(t, s.get("running", "taskRoles.Trainer.taskStatuses.0.containerNodeName"))
	for _, key := range []string{"submissionTime", "createdTime", "launchedTime", "appCreatedTime", "appLaunchedTime"} {
		assert.Greater(t, s.get("running", "jobStatus."+key), 1.7e12, "%s is in milliseconds", key)
	}
}

// firstKey returns the first key of an object in a JSON text. object is the key of that object.
func firstKey(t *testing.T, text json.RawMessage, object string) string {
	t.Helper()
	var whole map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &whole))
	d := json.NewDecoder(bytes.NewReader(whole[object]))
	_, err := d.Token()
	require.NoError(t, err)
	key, err := d.Token()
	require.NoError(t, err)
	return key.(string)
}
