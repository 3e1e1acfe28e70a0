package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// withSecrets returns a lab whose cluster has three Secrets in etcd, encrypted with the cluster's first key.
func withSecrets(t testing.TB, masters int) *lab {
	l := newLab(t, masters, 0)
	l.made()
	l.put("secrets", "default a paictl-1\njobs b paictl-1\njobs c paictl-1\n")
	return l
}

func (l *lab) put(object, text string) {
	l.t.Helper()
	require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, object), []byte(text), 0o600))
}

func (l *lab) rotateSecrets(edit ...func(*engine.Options)) *outcome {
	l.t.Helper()
	so, events := sshtest.Options(l.t, l.servers()...), &sink{}
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	o := l.options()
	o.Dialer, o.Sink = client, events
	for _, e := range edit {
		e(&o)
	}
	cs, err := RotateSecrets(l.t.Context(), l.spec(), o)
	return &outcome{changes: cs, err: err, events: events.events}
}

var keysOf = regexp.MustCompile(`name: (\S+)\s+secret: (\S+)`)

func (l *lab) keyNames(host string) string {
	var out []string
	for _, m := range keysOf.FindAllStringSubmatch(l.host(host).read(phases.EncryptionFile), -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

// rotated checks that all Secrets are encrypted with the key, and that no master has any other key.
func (l *lab) rotated(key string) {
	l.t.Helper()
	secrets, err := os.ReadFile(l.cluster + "/secrets")
	require.NoError(l.t, err)
	assert.Equal(l.t, strings.ReplaceAll("default a KEY\njobs b KEY\njobs c KEY\n", "KEY", key), string(secrets))
	file := l.host("m1").read(phases.EncryptionFile)
	for _, n := range l.spec().ControlPlane() {
		assert.Equal(l.t, file, l.host(n.Hostname).read(phases.EncryptionFile))
		assert.Equal(l.t, key, l.keyNames(n.Hostname))
		info, err := os.Stat(l.host(n.Hostname).root + phases.EncryptionFile)
		require.NoError(l.t, err)
		assert.Equal(l.t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestTheKeyOfSecretsIsRotated(t *testing.T) {
	t.Parallel()
	l := withSecrets(t, 2)
	old := keysOf.FindStringSubmatch(l.host("m1").read(phases.EncryptionFile))[2]
	dry := l.rotateSecrets(func(o *engine.Options) { o.DryRun = true })
	require.NoError(t, dry.err)
	assert.Equal(t, "paictl-1", l.keyNames("m1"), "a dry run changes nothing")
	assert.Equal(t, "m1 new-key update /etc/paictl/encryption.yaml key paictl-2\nm2 new-key update /etc/paictl/encryption.yaml key paictl-2\n"+
		"m1 rewrite update all Secrets written again by key paictl-2\n", lines(dry.changes))

	o := l.rotateSecrets()
	require.NoError(t, o.err, "%s", l.story(o))
	l.rotated("paictl-2")
	fresh := keysOf.FindStringSubmatch(l.host("m1").read(phases.EncryptionFile))[2]
	assert.NotEqual(t, old, fresh)
	for _, h := range l.hosts {
		for _, call := range h.calls() {
			assert.NotContains(t, call, fresh)
		}
	}
	for _, e := range o.events {
		assert.NotContains(t, l.story(o), fresh)
		assert.NotContains(t, e.Message, fresh)
	}
	require.NoError(t, l.rotateSecrets().err)
	l.rotated("paictl-3")
}

// TestARotationOfTheKeyThatWasCutOffGoesOn interrupts paictl, or the power of the masters, at points of a rotation. All Secrets must stay readable.
func TestARotationOfTheKeyThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	cutOff(t, 3, 3, func(t *testing.T) story {
		l := withSecrets(t, 2)
		return story{lab: l, run: func() *outcome { return l.rotateSecrets() }, check: func(*crash, *outcome) {
			key := l.keyNames("m1")
			assert.Contains(t, []string{"paictl-2", "paictl-3"}, key) // the first run may have completed
			l.rotated(key)
		}}
	})
}

func TestKeysThatNoRotationHasWrittenAreRefused(t *testing.T) {
	key := func(name string) restKey { return restKey{name, "c2VjcmV0"} }
	one, two, three := key("paictl-1"), key("paictl-2"), key("paictl-10")
	m1, m2 := &engine.Node{}, &engine.Node{}
	for _, c := range []struct {
		name   string
		m1, m2 []restKey
		want   keyState
		ok     bool
	}{
		{"no rotation", []restKey{one}, []restKey{one}, keyAlone, true},
		{"the first has the new one", []restKey{one, two}, []restKey{one}, keyReads, true},
		{"the second writes", []restKey{one, two}, []restKey{two, one}, keyWrites, true},
		{"the first has done", []restKey{two}, []restKey{two, one}, keyAlone, true},
		{"several old ones", []restKey{two, one, three}, []restKey{two, one}, keyReads, true},
		{"numbers, not letters", []restKey{two, three}, []restKey{three, two}, keyWrites, true},
		{"two steps apart", []restKey{two, one}, []restKey{one}, 0, false},
		{"the end and the begin", []restKey{two}, []restKey{one, two}, 0, false},
		{"nothing in common", []restKey{two}, []restKey{one}, 0, false},
		{"same name, another key", []restKey{two, one}, []restKey{{"paictl-1", "YW5vdGhlcg=="}, two}, 0, false},
		{"another order", []restKey{one, two, three}, []restKey{two, one, three}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, _, err := furthest(map[*engine.Node][]restKey{m1: c.m1, m2: c.m2})
			if !c.ok {
				require.ErrorContains(t, err, "are not those of the other masters")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, state)
		})
	}
}

func TestARotationOfTheKeyIsRefused(t *testing.T) {
	t.Parallel()
	l := withSecrets(t, 2)
	file := l.host("m1").read(phases.EncryptionFile)
	require.NoError(t, os.MkdirAll(l.cluster+"/nodes/stranger", 0o700))
	require.NoError(t, os.WriteFile(l.cluster+"/nodes/stranger/labels", []byte("node-role.kubernetes.io/control-plane=\n"), 0o600))
	require.NoError(t, os.WriteFile(l.cluster+"/nodes/stranger/annotations", nil, 0o600))
	require.ErrorContains(t, l.rotateSecrets().err, "the cluster has a master that layout.yaml doesn't: stranger")
	require.NoError(t, os.RemoveAll(l.cluster+"/nodes/stranger"))

	manifest := "/etc/kubernetes/manifests/kube-apiserver.yaml"
	was := l.host("m2").read(manifest)
	l.host("m2").write(manifest, strings.ReplaceAll(was, "--encryption-provider-config-automatic-reload=true", ""))
	require.ErrorContains(t, l.rotateSecrets().err, "the API servers of m2 don't read their keys again when those change")
	l.host("m2").write(manifest, was)

	secret := keysOf.FindStringSubmatch(file)[2]
	for name, bad := range map[string]string{
		"another provider":   strings.ReplaceAll(file, "secretbox", "aescbc"),
		"more resources":     strings.ReplaceAll(file, "secrets]", "secrets, configmaps]"),
		"a name of its own":  strings.ReplaceAll(file, "paictl-1", "mine"),
		"a key of 8 bytes":   strings.ReplaceAll(file, secret, "c2VjcmV0MTI="),
		"no YAML":            "\x00{",
		"an unknown field":   file + "more: true\n",
		"nothing but a kind": "kind: EncryptionConfiguration\n",
	} {
		l.host("m2").write(phases.EncryptionFile, bad)
		err := l.rotateSecrets().err
		require.ErrorContains(t, err, "is not as paictl writes it", name)
		assert.NotContains(t, err.Error(), secret, name)
	}
	l.host("m2").write(phases.EncryptionFile, strings.ReplaceAll(file, secret, strings.Repeat("A", 43)+"="))
	require.ErrorContains(t, l.rotateSecrets().err, "are not those of the other masters")
	l.host("m2").write(phases.EncryptionFile, file)

	l.host("m1").write("/.fake/fail/replace", "")
	err := l.rotateSecrets().err
	require.ErrorContains(t, err, "3 of 3 Secrets are not encrypted with the new key, or were not seen, so the old one stays")
	require.ErrorContains(t, err, "secrets is forbidden")
	assert.Equal(t, "paictl-2 paictl-1", l.keyNames("m2"), "what is written by the old key can be read")
	l.host("m1").remove("/.fake/fail/replace")
	require.NoError(t, l.rotateSecrets().err)
	l.rotated("paictl-2")

	l.host("m2").server.Close()
	require.ErrorContains(t, l.rotateSecrets().err, "m2 doesn't answer")
	assert.Equal(t, "paictl-2", l.keyNames("m1"))
}
