package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// serveSnapshot makes etcd's API return a database with a checksum.
func (l *lab) serveSnapshot(db []byte, sum [32]byte) {
	l.t.Helper()
	half := len(db) / 2
	text := fmt.Sprintf(`{"result":{"remaining_bytes":"%d","blob":%q,"version":"3.6.0"}}`+"\n", len(db)-half, base64.StdEncoding.EncodeToString(db[:half]))
	text += fmt.Sprintf(`{"result":{"blob":%q,"version":"3.6.0"}}`+"\n", base64.StdEncoding.EncodeToString(db[half:]))
	text += fmt.Sprintf(`{"result":{"blob":%q,"version":"3.6.0"}}`+"\n", base64.StdEncoding.EncodeToString(sum[:]))
	require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, "snapshot"), []byte(text), 0o600))
}

// hasKeys writes kubeadm's keys to each machine of the control plane, because the stub of kubeadm doesn't create keys.
func (l *lab) hasKeys() {
	for _, h := range l.hosts {
		if strings.HasPrefix(h.name, "m") {
			h.write("/etc/kubernetes/pki/sa.key", "the key of service accounts")
			h.write("/etc/kubernetes/pki/sa.pub", "the public key of service accounts")
			for _, name := range authorityNames {
				key, text := newKeyPEM(l.t)
				cert := issue(l.t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true}, key, nil)
				h.write(authorityCert(name), string(pki.Encode(cert)))
				h.write(authorityKey(name), string(text))
			}
		}
	}
}

func (l *lab) backUp(edit ...func(*ssh.Options)) (map[string][]byte, *backup.Manifest, []engine.Event, error) {
	l.t.Helper()
	so, events := sshtest.Options(l.t, l.servers()...), &sink{}
	for _, f := range edit {
		f(&so)
	}
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Seal{Plain: true}, backup.Head{Cluster: "pai"})
	require.NoError(l.t, err)
	if err := BackUp(context.Background(), l.spec(), engine.Options{Dialer: client, Sink: events, Clock: time.Now, StepTimeout: time.Minute}, w); err != nil {
		return nil, nil, events.events, err
	}
	_, err = w.Close()
	require.NoError(l.t, err)
	parts := map[string][]byte{}
	m, err := backup.Read(&out, backup.Keys{Plain: true}, func(name string, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		parts[name] = text
		return err
	})
	require.NoError(l.t, err)
	return parts, m, events.events, nil
}

func TestABackupHasTheKeysAndEtcdAndChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	l.made()
	l.hasKeys()
	db := bytes.Repeat([]byte("objects of Kubernetes "), 5000)
	l.serveSnapshot(db, sha256.Sum256(db))
	l.forgetCalls()
	before := l.state()
	parts, m, events, err := l.backUp(func(so *ssh.Options) { so.MaxOutput = 32 << 10 })
	require.NoError(t, err)
	l.rest()
	assert.Equal(t, before, l.state())
	for _, e := range events {
		assert.NotEqual(t, engine.EventWarning, e.Kind, e.Message)
	}
	sum := sha256.Sum256(db)
	assert.Equal(t, append(bytes.Clone(db), sum[:]...), parts[backup.PartEtcd], "as etcd's own tools take it")
	keys := map[string]string{}
	in := tar.NewReader(bytes.NewReader(parts[backup.PartKeys]))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		keys[h.Name] = string(text)
	}
	require.NoError(t, CheckKeys(bytes.NewReader(parts[backup.PartKeys])))
	for _, name := range []string{"etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/sa.key", "etc/paictl/encryption.yaml"} {
		assert.Equal(t, l.host("m1").read("/"+name), keys[name], name)
		assert.NotEmpty(t, keys[name], name)
	}
	assert.Equal(t, "v1.36.3", m.Kubernetes)
	require.Len(t, m.Machines, 3)
	assert.Equal(t, backup.Machine{Name: "m1", IP: "10.9.0.1", Roles: []string{"master"}}, m.Machines[0])
}

func TestABackupIsOfAMasterThatAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 0)
	l.made()
	l.hasKeys()
	db := []byte("objects")
	l.serveSnapshot(db, sha256.Sum256(db))
	l.host("m1").server.Close()
	parts, _, _, err := l.backUp()
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(parts[backup.PartEtcd], db))
}

func TestABackupThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	db := []byte("objects of Kubernetes")
	for name, c := range map[string]struct {
		breaks func(l *lab)
		says   string
	}{
		"etcd is away":        {func(l *lab) { l.host("m1").write("/.fake/fail/etcd", "") }, "etcd on m1 doesn't answer"},
		"another checksum":    {func(l *lab) { l.serveSnapshot(db, [32]byte{}) }, "its checksum differs"},
		"a stream is cut off": {func(l *lab) { l.cutSnapshot() }, "the transfer was interrupted"},
		"etcd refuses":        {func(l *lab) { l.host("m1").write("/.fake/fail/snapshot", "") }, "etcdserver: permission denied"},
		"a rotation ends": {func(l *lab) {
			l.host("m1").write("/.fake/during/snapshot", "echo another >\"$R/etc/paictl/encryption.yaml\"\n")
		}, "the cluster's keys changed while it was saved"},
		"a key that isn't the certificate's": {func(l *lab) {
			l.host("m1").write("/etc/kubernetes/pki/front-proxy-ca.key", l.host("m1").read("/etc/kubernetes/pki/ca.key"))
		}, "m1: /etc/kubernetes/pki/front-proxy-ca.crt and /etc/kubernetes/pki/front-proxy-ca.key don't belong together"},
		"no key is there":      {func(l *lab) { l.host("m1").remove("/etc/kubernetes/pki/sa.key") }, "/etc/kubernetes/pki/sa.key is missing on this machine"},
		"nothing is installed": {func(l *lab) { l.host("m1").remove("/var/lib/paictl/member") }, "there is no cluster on m1 yet"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 0)
			l.made()
			l.hasKeys()
			l.serveSnapshot(db, sha256.Sum256(db))
			c.breaks(l)
			_, _, _, err := l.backUp()
			require.ErrorContains(t, err, c.says)
		})
	}
}

func (l *lab) cutSnapshot() {
	l.t.Helper()
	file := filepath.Join(l.cluster, "snapshot")
	text, err := os.ReadFile(file)
	require.NoError(l.t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.NoError(l.t, os.WriteFile(file, []byte(lines[0]), 0o600))
}
