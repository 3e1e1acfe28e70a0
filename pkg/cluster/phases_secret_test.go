package cluster

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// TestNoSecretLeavesItsPlace creates a cluster with a password that is hard to quote. It then searches for this password, and for secrets of the
// run, in all files and messages that other users could read.
func TestNoSecretLeavesItsPlace(t *testing.T) {
	t.Parallel()
	const password = `pä'ss"w\ord# $(x) %s 日本`
	l := newLab(t, 2, 1)
	for _, h := range l.hosts {
		h.server = sshtest.NewServer(t, sshtest.Config{
			Name: h.name, Handler: h, User: "pai", Password: password, Sudo: &sshtest.Sudo{Password: password},
		})
	}
	l.conf.Layout.SSH.Password = secret.String(password)
	l.host("w1").write("/.fake/fail/kubeadm-join", "timed out\n") // errors quote much
	var log bytes.Buffer
	var o *outcome
	traced := func(o *labOptions, so *ssh.Options) {
		so.Tracer = ssh.Tracers{so.Tracer, ssh.SlogTracer{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
	}
	plan := l.up(t.Context(), traced, func(o *labOptions, _ *ssh.Options) { o.DryRun = true })
	require.NoError(t, plan.err)
	o = l.up(t.Context(), traced)
	require.Error(t, o.err)

	secrets := map[string]string{"the password": password}
	tokens, err := os.ReadFile(l.cluster + "/tokens")
	require.NoError(t, err)
	secrets["the join token"] = strings.TrimSpace(string(tokens))
	certificateKey, err := os.ReadFile(l.cluster + "/certificate-key")
	require.NoError(t, err)
	secrets["the certificates' key"] = strings.TrimSpace(string(certificateKey))
	secrets["the encryption key"] = regexp.MustCompile(`secret: (\S{40,})`).FindStringSubmatch(l.host("m1").read(phases.EncryptionFile))[1]

	for what, s := range secrets {
		require.Greater(t, len(s), 15, what)
	}
	public := map[string]string{"the log": log.String(), "the error": o.err.Error(), "the summary": l.story(o)}
	for name, v := range map[string]any{"the events": o.events, "the plan": plan.changes, "the changes": o.changes, "the configuration": l.conf} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		public[name] = string(text)
	}
	for _, h := range l.hosts {
		public["the journal of "+h.name] = h.read(engine.StateDir + "/journal")
		public["the calls on "+h.name] = h.read("/.fake/calls")
		for _, e := range h.server.Execs() {
			public["a command line on "+h.name] += e.Line + "\n"
		}
		h.worldReadable(func(path, text string) { public[h.name+":"+path] = text })
	}
	for where, text := range public {
		for what, s := range secrets {
			quoted, err := json.Marshal(s)
			require.NoError(t, err)
			assert.NotContains(t, text, s, "%s in %s", what, where)
			assert.NotContains(t, text, strings.Trim(string(quoted), `"`), "%s in %s", what, where)
		}
	}
	assert.NotEmpty(t, public["the log"])
	assert.Contains(t, public["the journal of m1"], "change")
	for _, f := range []string{"/join.yaml", "/certificate-key.yaml"} {
		for _, h := range l.hosts {
			assert.NoFileExists(t, h.root+engine.StateDir+f)
		}
	}
}

// worldReadable calls f for each file that any user of the machine can read.
func (h *fakeHost) worldReadable(f func(path, text string)) {
	h.lab.t.Helper()
	err := filepath.WalkDir(h.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if info.Mode()&0o001 == 0 {
				return filepath.SkipDir
			}
			return nil
		}
		if info.Mode()&0o004 != 0 {
			b, err := os.ReadFile(p)
			f(strings.TrimPrefix(p, h.root), string(b))
			return err
		}
		return nil
	})
	require.NoError(h.lab.t, err)
}
