package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestAClusterIsRestoredOntoAnotherMachine saves a cluster, removes its machine, and restores the cluster onto a machine with another name and
// address. After that, the history contains a completed job, and a job that was running starts again with its code.
func TestAClusterIsRestoredOntoAnotherMachine(t *testing.T) {
	l := newServices(t, "e2eb", 1)
	runsJobs := []string{"-n", "scheduler", "-n", "storage", "-n", "job-controller"}
	l.set("scheduler", map[string]any{"enabled": true}) // it is off by default without GPUs
	l.push()
	l.start(0, runsJobs...)
	before := &jobs{&gpus{services: l}}
	code := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.CopyFS(code, os.DirFS("../../examples/jobs/code")))
	before.submit(t, example(t, "hello"), "--code", code)
	before.ended(t, "hello", "succeeded", "")
	ok(t, before.job("delete", "hello", "--yes")...)
	before.submit(t, example(t, "hello", "name: hello", "name: runs", "- echo", "- sleep 3600; echo"), "--code", code)
	before.is(t, "runs", "running")
	l.kubectl("create secret generic kept --from-literal=word=sesame")
	token := strings.TrimSpace(l.kubectl("create token default --duration=24h"))
	dir := filepath.Dir(l.cluster)
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	phrase, other := file("phrase", []byte("a passphrase of some length\n")), file("other", []byte("another passphrase\n"))
	saved := filepath.Join(dir, "saved.paictl-backup")
	ok(t, "cluster", "backup", "-p", l.cluster, "--file", saved, "--passphrase-file", phrase)
	rehearsed := ok(t, "cluster", "backup", "verify", saved, "--passphrase-file", phrase, "--rehearse", "--bundle", bundle).stdout
	t.Log(rehearsed)
	assert.Regexp(t, `(?m)^ +1 nodes$`, rehearsed)
	assert.Regexp(t, `(?m)^ +[1-9]\d* secrets$`, rehearsed)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "paictl-rehearsal-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	data, err := os.ReadFile(saved)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "sesame")
	data[len(data)/2] ^= 1
	damaged := file("damaged.paictl-backup", data)
	ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[0])

	m := &services{lab: labIn(t, t.TempDir())}
	t.Cleanup(m.destroy)
	m.hosts("e2ec", 1)
	m.generate()
	for _, c := range []struct{ file, phrase, says string }{
		{damaged, phrase, "damaged"}, {saved, other, "passphrase"},
	} {
		r := run(t, "cluster", "restore", c.file, "-p", m.cluster, "--passphrase-file", c.phrase, "--confirm", "pai")
		assert.NotZero(t, r.code)
		assert.Contains(t, r.stderr, c.says)
		m.on(m.names[0], "test ! -e /etc/kubernetes/pki && test ! -e /var/lib/paictl/restore")
	}
	begun := time.Now()
	ok(t, "cluster", "restore", saved, "-p", m.cluster, "--passphrase-file", phrase, "--confirm", "pai")
	t.Logf("restored in %s", time.Since(begun).Round(time.Second))
	m.kubectl("wait node --all --for=condition=Ready --timeout=180s") // the job controller waits for its volume
	assert.Equal(t, "c2VzYW1l", strings.TrimSpace(m.kubectl("get secret kept -o jsonpath={.data.word}")))
	assert.Equal(t, "node/"+m.names[0], strings.TrimSpace(m.kubectl("get nodes -o name")))
	assert.Contains(t, m.on(m.names[0], "kubectl --kubeconfig=/dev/null --server=https://127.0.0.1:6443 --insecure-skip-tls-verify --token="+token+" auth whoami 2>&1"), "system:serviceaccount:default:default")
	assert.Zero(t, m.up(0).Changes)

	assert.Contains(t, m.on(m.names[0], "stat -c '%u %a' /datastorage/job-controller/job-controller-data/archive.db"), "65532 600")
	m.kubeconfig = filepath.Join(filepath.Dir(m.cluster), "kubeconfig")
	require.NoError(t, os.WriteFile(m.kubeconfig, nil, 0o600))
	cmd, _, errOut := command(t.Context(), t, "cluster", "kubeconfig", "-p", m.cluster, "--use")
	cmd.Env = append(cmd.Env, "KUBECONFIG="+m.kubeconfig)
	require.NoError(t, cmd.Run(), errOut)
	m.set("scheduler", map[string]any{"enabled": true})
	ok(t, m.args("config", "push", "--yes", "--force", "-p", m.cluster)...)
	m.start(0, runsJobs...)
	m.isReady(1)
	after := &jobs{&gpus{services: m}}
	after.is(t, "hello", "succeeded")
	assert.Contains(t, after.log(t, "hello"), "Hello ann")
	after.is(t, "runs", "running")
	assert.Equal(t, []string{m.names[0]}, nodesOf(after.podsOf(t, "runs")))
	again := ok(t, "cluster", "restore", saved, "-p", m.cluster, "--passphrase-file", phrase, "--confirm", "pai", "--history")
	assert.Contains(t, again.stderr, "0 jobs restored; already there: 1")
	after.is(t, "runs", "running")
}

func nodesOf(pods []corev1.Pod) (out []string) {
	for i := range pods {
		out = append(out, pods[i].Spec.NodeName)
	}
	return out
}
