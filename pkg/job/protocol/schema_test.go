package protocol

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("file:///job.schema.json", v))
	s, err := c.Compile("file:///job.schema.json")
	require.NoError(t, err)
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
	return s.Validate(v)
}

func TestTheSchemaAcceptsJobs(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../examples/jobs/*.yaml")
	require.NoError(t, err)
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, validate(t, s, string(text)), file)
	}
	for _, text := range []string{small, role("exec: [sh]"), extras("hivedScheduler: {taskRoles: {main: {skuType: ~}}}"), extras("x: 1")} {
		if strings.Contains(text, "exec") {
			text = strings.Replace(text, "    commands: [echo hello]\n", "", 1)
		}
		_, findings := Parse("job.yaml", []byte(text))
		require.NoError(t, findings.Err())
		require.NoError(t, validate(t, s, text), text)
	}
}

func TestWhatTheSchemaRefusesParseRefusesToo(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		strings.Replace(small, "protocolVersion: 2", "protocolVersion: 1", 1), strings.Replace(small, "name: train", "name: a b", 1),
		strings.Replace(small, "type: job", "type: task", 1), small + "other: 1\n", small + "jobRetryCount: -1\n", small + "parameters: []\n",
		small + "deployments: []\n", small + "version: true\n", role("instances: 0"), role("instances: 1.5"), role("completion: {a: 1}"), role("exec: [a]"),
		role("extraContainerOptions: {a: 1}"), role("x: 1"), strings.Replace(small, "gpu: 0", "", 1), strings.Replace(small, "gpu: 0", "gpu: 0, ports: {}", 1),
		strings.Replace(small, "  main:", "  a-b:", 1), head + "taskRoles: {}\n", head + "taskRoles: []\n", head,
		strings.Replace(small, "uri:", "url: x, uri:", 1), strings.Replace(small, ", uri: \"ubuntu:24.04\"", "", 1), strings.Replace(small, "[echo hello]", "[]", 1),
		extras("hivedScheduler: {jobPriorityClass: high}"), extras("hivedScheduler: {taskRoles: {}}"), extras("com.microsoft.pai.runtimeplugin: {}"),
		extras("com.microsoft.pai.runtimeplugin: [{plugin: x}]"), extras("hostNetwork: 1"), extras("gracePeriodSec: -1"), extras("checkpointDir: x"),
	} {
		require.Error(t, validate(t, s, text), text)
		_, findings := Parse("job.yaml", []byte(text))
		require.Error(t, findings.Err(), text)
	}
}
