package logstore

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

func (l *lab) runs(pod, container string) {
	l.t.Helper()
	dir := filepath.Join(l.groups, "kubepods", "pod"+pod, container)
	require.NoError(l.t, os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{"cpu.stat": "usage_usec 5\n", "memory.current": "70\n", "memory.stat": "inactive_file 30\n", "../../../cgroup.controllers": ""} {
		require.NoError(l.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

func TestOnlyContainersOfJobsAreMeasuredForWhoKnowsTheToken(t *testing.T) {
	l := newLab(t)
	l.print(1)
	const stranger = "99999999-2222-3333-4444-555555555555"
	require.NoError(t, os.MkdirAll(filepath.Join(l.pods, "kube-system_dns_"+stranger, "dns"), 0o700))
	l.runs(uid, strings.Repeat("a", 64))
	l.runs(stranger, strings.Repeat("b", 64))
	w := ask(t, l, logapi.UsePath, "sesame")
	require.Equal(t, http.StatusOK, w.Code)
	assert.JSONEq(t, `[{"pod":"`+uid+`","container":"`+strings.Repeat("a", 64)+`","cpu":0,"memoryBytes":40}]`, w.Body.String())
	w = ask(t, l, logapi.UsePath, "sesam")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.NotContains(t, w.Body.String(), uid)
	require.NoError(t, os.RemoveAll(l.groups))
	assert.Equal(t, http.StatusInternalServerError, ask(t, l, logapi.UsePath, "sesame").Code, "a machine that shows no control groups isn't one on which nothing runs")
}
