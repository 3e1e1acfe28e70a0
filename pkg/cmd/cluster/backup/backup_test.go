package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/cluster/backup/target/targettest"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/test/tier"
)

func paictl(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	return paictlIn(t, func(string) string { return "" }, args...)
}

func paictlIn(t *testing.T, getenv func(string) string, args ...string) (code int, out, said string) {
	t.Helper()
	f := cmdutil.New("v0.0.0-test")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	f.Getenv = getenv
	code = cmd.Main(t.Context(), f, args)
	return code, stdout.String(), stderr.String()
}

// folder returns a folder with the configuration of one machine. The machine rejects connections.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/q.yaml", []byte("machines: [127.0.0.1]\nssh-port: 1\nssh-password: hunter2-hunter2\n"), 0o600))
	code, _, said := paictl(t, "config", "generate", "-i", dir+"/q.yaml", "-o", dir+"/c", "--offline")
	require.Zero(t, code, said)
	return dir + "/c"
}

func keysTar(t *testing.T, names ...string) []byte {
	t.Helper()
	cert, key := authority(t)
	return keysTarOf(t, cert, key, names...)
}

// keysTarOf returns an archive of keys in which all CAs have the same certificate and key.
func keysTarOf(t *testing.T, cert, key []byte, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		var text []byte
		switch filepath.Ext(name) {
		case ".crt":
			text = cert
		case ".key":
			text = key
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}))
		_, err := w.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func authority(t *testing.T) (cert, key []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	key, err = (&pki.Authority{Cert: parsed, Key: private}).EncodeKey()
	require.NoError(t, err)
	return pki.Encode(parsed), key
}

func TestKeysOfABackupAreThoseOfACluster(t *testing.T) {
	cert, key := authority(t)
	other, _ := authority(t)
	require.NoError(t, cluster.CheckKeys(bytes.NewReader(keysTarOf(t, append(other, cert...), key, backup.KeyFiles()...))), "a rotation was killed")
	for name, c := range map[string]struct{ tar, says string }{
		"not all":        {string(keysTar(t, "etc/kubernetes/pki/ca.crt")), "etc/kubernetes/pki/ca.key is missing"},
		"a job of cron":  {string(keysTar(t, "etc/kubernetes/pki/ca.crt", "etc/cron.d/x")), "\"etc/cron.d/x\" doesn't belong there"},
		"one twice":      {string(keysTar(t, "etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/ca.crt")), "doesn't belong there"},
		"a way out":      {string(keysTar(t, "../etc/kubernetes/pki/ca.crt")), "doesn't belong there"},
		"no archive":     {strings.Repeat("x", 1024), "the keys in the backup"},
		"nothing at all": {"", "is missing"},
		"another's key":  {string(keysTarOf(t, other, key, backup.KeyFiles()...)), "/etc/kubernetes/pki/ca.crt and /etc/kubernetes/pki/ca.key don't belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, cluster.CheckKeys(strings.NewReader(c.tar)), c.says)
		})
	}
}

func TestABackupWhoseKeysDoNotBelongTogetherIsNotWhole(t *testing.T) {
	cert, _ := authority(t)
	_, key := authority(t)
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Seal{Plain: true}, backup.Head{Cluster: "pai"})
	require.NoError(t, err)
	keys := keysTarOf(t, cert, key, backup.KeyFiles()...)
	require.NoError(t, w.Add(backup.PartKeys, int64(len(keys)), bytes.NewReader(keys)))
	_, err = w.Close()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "made-by-an-earlier"+backup.Ending)
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	for _, more := range [][]string{nil, {"--rehearse", "--bundle", t.TempDir()}} {
		code, _, said := paictl(t, append([]string{"cluster", "backup", "verify", file, "--insecure-plain"}, more...)...)
		assert.Equal(t, cmdutil.ExitFailure, code)
		assert.Contains(t, said, "/etc/kubernetes/pki/ca.crt and /etc/kubernetes/pki/ca.key don't belong together")
	}
}

// archive writes a backup of the configuration conf into the folder dir, and returns its path.
func archive(t *testing.T, dir, conf string, seal backup.Seal, edit func(text string) string, kubernetes ...string) string {
	t.Helper()
	at := time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, seal, backup.Head{Paictl: "v1", Cluster: "pai", Time: at})
	require.NoError(t, err)
	for _, name := range []string{"layout.yaml", "kubernetes-configuration.yaml", "k8s-role-definition.yaml", "services-configuration.yaml"} {
		text, err := os.ReadFile(filepath.Join(conf, name))
		require.NoError(t, err)
		if edit != nil {
			text = []byte(edit(string(text)))
		}
		require.NoError(t, w.Add("config/"+name, int64(len(text)), bytes.NewReader(text)))
	}
	keys := keysTar(t, backup.KeyFiles()...)
	require.NoError(t, w.Add(backup.PartKeys, int64(len(keys)), bytes.NewReader(keys)))
	require.NoError(t, w.Add(backup.PartEtcd, 4, strings.NewReader("etcd")))
	w.Lacks("the history of jobs", errors.New("it is in PostgreSQL"))
	w.Describe(strings.Join(append(kubernetes, "v1.36.3")[:1], ""), []backup.Machine{{Name: "m1", IP: "10.0.0.1"}})
	_, err = w.Close()
	require.NoError(t, err)
	file := filepath.Join(dir, backup.Name("pai", at))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

func TestABackupIsVerifiedAndExtractedWithItsKey(t *testing.T) {
	conf, dir := folder(t), t.TempDir()
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	key := filepath.Join(dir, "key.txt")
	require.NoError(t, os.WriteFile(key, []byte(pair.String()+"\n"), 0o600))
	file := archive(t, dir, conf, backup.Seal{Recipients: []age.Recipient{pair.Recipient()}}, nil)

	code, out, said := paictl(t, "cluster", "backup", "verify", file, "--identity", key)
	require.Zero(t, code, said)
	assert.Contains(t, out, file+": whole, ")
	assert.Contains(t, out, "1 machine: m1 (10.0.0.1)")
	assert.Contains(t, out, "etcd.db")
	code, out, said = paictl(t, "cluster", "backup", "verify", file, "-i", key, "-o", "json")
	require.Zero(t, code, said)
	var m backup.Manifest
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	assert.Len(t, m.Parts, 6)

	code, _, said = paictl(t, "cluster", "backup", "verify", file)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "give the private key with --identity FILE")

	to := filepath.Join(dir, "unpacked")
	code, _, said = paictl(t, "cluster", "backup", "extract", file, "--to", to, "-i", key)
	require.Zero(t, code, said)
	assert.Contains(t, said, "rm -r "+to)
	text, err := os.ReadFile(to + "/config/layout.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(text), "127.0.0.1")
	info, err := os.Stat(to + "/keys.tar")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(to)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	code, _, said = paictl(t, "cluster", "backup", "extract", file, "--to", to, "-i", key)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "isn't empty")
}

func TestNothingIsLeftOfWhatIsNoWholeBackup(t *testing.T) {
	dir := t.TempDir()
	file := archive(t, dir, folder(t), backup.Seal{Plain: true}, nil)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text[:len(text)-10], 0o600))
	to := filepath.Join(dir, "unpacked")
	code, _, said := paictl(t, "cluster", "backup", "extract", file, "--to", to)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "it isn't encrypted, so anyone may have written it")
	code, _, said = paictl(t, "cluster", "backup", "extract", file, "--to", to, "--insecure-plain")
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "the backup is damaged")
	left, err := os.ReadDir(to)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestARestoreIsRefusedBeforeAMachineIsAsked(t *testing.T) {
	tier.More(t, "a bundle")
	t.Setenv("TMPDIR", t.TempDir()) // others that were killed leave their parts
	conf, dir := folder(t), t.TempDir()
	bundle := "--bundle=" + os.Getenv("PAICTL_TEST_BUNDLE")
	if bundle == "--bundle=" {
		t.Skip("it opens a bundle: name one in PAICTL_TEST_BUNDLE")
	}
	whole := archive(t, dir, conf, backup.Seal{Plain: true}, nil)
	older := archive(t, t.TempDir(), conf, backup.Seal{Plain: true}, func(s string) string { return s }, "v1.37.0")
	other := archive(t, t.TempDir(), conf, backup.Seal{Plain: true}, func(s string) string { return strings.ReplaceAll(s, "10.254.0.0/16", "10.191.0.0/16") })
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no terminal":        {[]string{whole}, cmdutil.ExitUsage, "add --confirm pai"},
		"another name":       {[]string{whole, "--confirm", "other"}, cmdutil.ExitUsage, "the cluster's name is pai"},
		"no file":            {[]string{dir + "/none", "--confirm", "pai"}, cmdutil.ExitFailure, "no such file"},
		"no backup":          {[]string{conf + "/layout.yaml", "--confirm", "pai"}, cmdutil.ExitFailure, "it isn't a backup of paictl"},
		"another network":    {[]string{other, "--confirm", "pai"}, cmdutil.ExitFailure, "the objects in the backup have addresses of "},
		"a later Kubernetes": {[]string{older, "--confirm", "pai"}, cmdutil.ExitFailure, "the backup was written by Kubernetes v1.37.0"},
		"no history":         {[]string{whole, "--confirm", "pai", "--history"}, cmdutil.ExitFailure, "the backup has no history of jobs: it is in PostgreSQL"},
		"no one is at home":  {[]string{whole, "--confirm", "pai"}, cmdutil.ExitPreflight, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, said := paictl(t, append([]string{"cluster", "restore", "-p", conf, bundle, "--insecure-plain"}, c.args...)...)
			assert.Equal(t, c.code, code, said)
			assert.Contains(t, said, c.says)
			if name != "no one is at home" {
				assert.NotContains(t, said, "connect")
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "paictl-restore-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the parts are the cluster's keys")
}

func TestABackupSaysWhatItNeedsFirst(t *testing.T) {
	conf, dir := folder(t), t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"neither key nor terminal": {nil, cmdutil.ExitUsage, "add --recipient or --passphrase-file"},
		"two ways":                 {[]string{"--insecure-plain", "-r", "age1x"}, cmdutil.ExitUsage, "exclude each other"},
		"no recipient":             {[]string{"-r", "age1x"}, cmdutil.ExitFailure, "age-keygen"},
		"no passphrase":            {[]string{"--passphrase-file", dir + "/none"}, cmdutil.ExitFailure, "no such file"},
		"no folder":                {[]string{"--to", dir + "/none", "--insecure-plain"}, cmdutil.ExitFailure, "no such file"},
		"two places":               {[]string{"--to", dir, "--file", "x", "--insecure-plain"}, cmdutil.ExitUsage, "exclude each other"},
		"no one is at home":        {[]string{"--to", dir, "--insecure-plain"}, cmdutil.ExitFailure, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, said := paictl(t, append([]string{"cluster", "backup", "-p", conf}, c.args...)...)
			assert.Equal(t, c.code, code, said)
			assert.Contains(t, said, c.says)
		})
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "a backup that failed leaves nothing")
}

func TestOldBackupsAreListedAndDeleted(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)
	for day := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, backup.Name("pai", now.AddDate(0, 0, -day))), []byte("x"), 0o600))
	}
	code, out, said := paictl(t, "cluster", "backup", "list", "--to", dir, "-o", "name")
	require.Zero(t, code, said)
	assert.Len(t, strings.Fields(out), 20)
	prune := []string{"cluster", "backup", "prune", "--to", dir, "--keep-last", "1", "--keep-daily", "2", "--keep-weekly", "1"}
	code, out, said = paictl(t, append(prune, "--dry-run", "-o", "name")...)
	require.Zero(t, code, said)
	assert.Len(t, strings.Fields(out), 18)
	code, _, said = paictl(t, prune...)
	assert.Equal(t, cmdutil.ExitUsage, code, said)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 20)
	code, _, said = paictl(t, append(prune, "--yes")...)
	require.Zero(t, code, said)
	assert.Contains(t, said, "deleted 18 backups of 20 backups")
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2)
	code, _, said = paictl(t, "cluster", "backup", "list", "--to", dir+"/none")
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "no such file")
}

// paictl connects to a machine of the layout with the user and password in the layout, whether --to contains the machine's name or its address.
func TestBackupsOnAMachineOfTheLayout(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	server := sshtest.NewServer(t, sshtest.Config{User: "pai", Password: "hunter2-hunter2", Handler: sshtest.Shell{Root: dir}})
	_, port, err := net.SplitHostPort(server.Addr())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/q.yaml", []byte("machines: [127.0.0.1]\nssh-port: "+port+"\nssh-username: pai\nssh-password: hunter2-hunter2\n"), 0o600))
	code, _, said := paictl(t, "config", "generate", "-i", dir+"/q.yaml", "-o", dir+"/c", "--offline")
	require.Zero(t, code, said)
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "key.txt")
	require.NoError(t, os.WriteFile(key, []byte(pair.String()+"\n"), 0o600))
	name := filepath.Base(archive(t, dir, dir+"/c", backup.Seal{Recipients: []age.Recipient{pair.Recipient()}}, nil))
	layout, err := config.Load(dir + "/c")
	require.NoError(t, err)
	there := "ssh://" + layout.Layout.MachineList[0].Hostname + dir

	code, _, said = paictl(t, "cluster", "backup", "list", "-p", dir+"/c", "--to", there)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "host key")
	code, out, said := paictl(t, "cluster", "backup", "list", "-p", dir+"/c", "--to", there, "--accept-new-host-keys", "-o", "name")
	require.Zero(t, code, said)
	assert.Equal(t, there+"/"+name+"\n", out)
	code, out, said = paictl(t, "cluster", "backup", "verify", "-p", dir+"/c", there+"/"+name, "--identity", key)
	require.Zero(t, code, said)
	assert.Contains(t, out, there+"/"+name+": whole, ")
	code, _, said = paictl(t, "cluster", "backup", "extract", "-p", dir+"/c", "ssh://127.0.0.1"+dir+"/"+name, "--identity", key, "--to", dir+"/unpacked")
	require.Zero(t, code, said)
	assert.FileExists(t, dir+"/unpacked/config/layout.yaml")
	code, _, said = paictl(t, "cluster", "backup", "verify", "-p", dir+"/c", there+"/none", "--identity", key)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, there+"/none: file does not exist")
	assert.Contains(t, said, "paictl cluster backup list --to "+there)

	for _, elsewhere := range [][]string{{"-p", t.TempDir(), "--to", "ssh://pai@" + server.Addr() + dir}, {"-p", dir + "/c", "--to", "ssh://guest@127.0.0.1:" + port + dir}} {
		code, _, said = paictl(t, append([]string{"cluster", "backup", "list"}, elsewhere...)...)
		assert.Equal(t, cmdutil.ExitFailure, code)
		assert.Contains(t, said, "authentication refused", "the password is of a user of the layout")
	}
	code, _, said = paictl(t, "cluster", "backup", "prune", "-p", dir+"/c", "--to", there, "--keep-last", "0", "--keep-daily", "0", "--keep-weekly", "0", "--yes")
	require.Zero(t, code, said)
	assert.FileExists(t, dir+"/"+name, "the latest stays")
}

// A transfer that ends early must not be reported as a damaged backup.
func TestAConnectionThatIsLostIsNoDamage(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	server := sshtest.NewServer(t, sshtest.Config{Handler: sshtest.Shell{Root: dir}})
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Seal{Plain: true}, backup.Head{Cluster: "pai"})
	require.NoError(t, err)
	noise := make([]byte, 4<<20)
	_, _ = rand.Read(noise) // never fails
	require.NoError(t, w.Add("noise", int64(len(noise)), bytes.NewReader(noise)))
	_, err = w.Close()
	require.NoError(t, err)
	file := filepath.Join(dir, backup.Name("pai", time.Now()))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	code, _, said := paictl(t, "cluster", "backup", "verify", "--insecure-plain", "--accept-new-host-keys", "ssh://root@"+cutAfter(t, server.Addr(), 1<<20)+file)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "connection lost")
	assert.NotContains(t, said, "damaged")
}

// cutAfter starts a proxy for server, and returns its address. The proxy closes each connection after the server has sent the given number of
// bytes.
func cutAfter(t *testing.T, server string, bytes int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in) }()
			go func() {
				_, _ = io.CopyN(in, out, bytes)
				_, _ = in.Close(), out.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestBackupsInS3(t *testing.T) {
	g := targettest.S3(t)
	dir := t.TempDir()
	keys := map[string]string{}
	var pairs []*age.X25519Identity
	for _, name := range []string{"its", "another"} {
		pair, err := age.GenerateX25519Identity()
		require.NoError(t, err)
		pairs, keys[name] = append(pairs, pair), filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(keys[name], []byte(pair.String()+"\n"), 0o600))
	}
	file := archive(t, dir, folder(t), backup.Seal{Recipients: []age.Recipient{pairs[0].Recipient()}}, nil)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	to, err := target.Open("s3://backups/pai", target.Options{S3: g.S3})
	require.NoError(t, err)
	put := func(name string, text []byte) {
		_, err := to.Write(t.Context(), name, func(_ context.Context, w io.Writer) error { _, err := w.Write(text); return err })
		require.NoError(t, err)
	}
	name := filepath.Base(file)
	put(name, text)
	flipped := bytes.Clone(text)
	flipped[len(flipped)/2] ^= 1
	damaged := backup.Name("pai", time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC))
	put(damaged, flipped)
	s3 := func(verb string, args ...string) (int, string, string) {
		return paictlIn(t, g.S3.Getenv, append([]string{"cluster", "backup", verb, "--s3-endpoint", g.S3.Endpoint, "--s3-ca", g.S3.CA}, args...)...)
	}

	code, out, said := s3("list", "--to", "s3://backups/pai", "-o", "name")
	require.Zero(t, code, said)
	assert.Equal(t, "s3://backups/pai/"+name+"\ns3://backups/pai/"+damaged+"\n", out)
	code, out, said = s3("verify", "s3://backups/pai/"+name, "-i", keys["its"])
	require.Zero(t, code, said)
	assert.Contains(t, out, "s3://backups/pai/"+name+": whole, ")
	code, _, said = s3("verify", "s3://backups/pai/"+name, "-i", keys["another"])
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "they belong to other recipients")
	code, _, said = s3("verify", "s3://backups/pai/"+damaged, "-i", keys["its"])
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "the backup is damaged")
	code, _, said = s3("verify", "s3://backups/pai/none", "-i", keys["its"])
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "paictl cluster backup list --to s3://backups/pai")
	code, _, said = s3("extract", "s3://backups/pai/"+name, "-i", keys["its"], "--to", dir+"/unpacked")
	require.Zero(t, code, said)
	assert.FileExists(t, dir+"/unpacked/etcd.db")
	code, _, said = s3("prune", "--to", "s3://backups/pai", "--keep-last", "1", "--keep-daily", "0", "--keep-weekly", "0", "--yes")
	require.Zero(t, code, said)
	assert.Equal(t, []string{name}, g.Names(t, "pai/"))

	// Neither the flags nor the messages contain the secret key.
	code, _, said = paictl(t, "cluster", "backup", "list", "--to", "s3://backups/pai", "--s3-endpoint", g.S3.Endpoint, "--s3-ca", g.S3.CA)
	assert.Equal(t, cmdutil.ExitFailure, code)
	assert.Contains(t, said, "AWS_SECRET_ACCESS_KEY")
	assert.NotContains(t, said, targettest.SecretKey)
}
