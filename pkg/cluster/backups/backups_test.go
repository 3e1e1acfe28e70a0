package backups

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const token = "open-sesame"

// site is a cluster with a real etcd and a real API server. It also holds the files of its machine, and another machine for the backups.
type site struct {
	t        *testing.T
	cluster  *kube.Cluster
	dir      string // the folder of the backups, on the other machine
	keeper   *sshtest.Server
	pair     *age.X25519Identity
	settings Config
	args     map[string]string
	secrets  string // the folder of credentials
	disk     string // of the machine; the part that the chart mounts is below the argument "root"
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, cluster: kubetest.Start(t), dir: t.TempDir(), secrets: t.TempDir()}
	var err error
	s.pair, err = age.GenerateX25519Identity()
	require.NoError(t, err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := cssh.NewPublicKey(public)
	require.NoError(t, err)
	block, err := cssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	s.secret(filePrivateKey, string(pem.EncodeToMemory(block)))
	s.keeper = sshtest.NewServer(t, sshtest.Config{User: "keeper", Keys: []cssh.PublicKey{key}, Handler: sshtest.Shell{Root: s.dir}})
	s.settings.To, s.settings.Recipients, s.settings.SSH.KnownHosts = "ssh://keeper@"+s.keeper.Addr()+s.dir, []string{s.pair.Recipient().String()}, s.keeper.KnownHosts()
	s.settings.Prune, s.settings.Keep.Last = true, 2
	s.args = map[string]string{"credentials": s.secrets, "kubeconfig": kubetest.Kubeconfig(t), "root": t.TempDir()}
	s.disk = t.TempDir()
	s.args["etcd-port"] = s.machine(s.disk)
	s.mount()
	s.pushed()
	s.history()
	return s
}

func (s *site) secret(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.secrets, name), []byte(text), 0o600))
}

// machine writes the files of a control plane machine below root, and returns the port of its etcd.
func (s *site) machine(root string) string {
	s.t.Helper()
	sandbox := filepath.Dir(kubetest.Kubeconfig(s.t))
	for _, name := range backup.KeyFiles() {
		file := filepath.Join(root, name)
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(s.t, os.WriteFile(file, []byte("what is in "+name), 0o600))
	}
	for to, from := range map[string]string{
		"etcd/ca.crt": "etcd-ca.crt", "etcd/ca.key": "etcd-ca.key", "etcd/server.crt": "apiserver-etcd-client.crt", "etcd/server.key": "apiserver-etcd-client.key",
		"ca.crt": "ca.crt", "ca.key": "ca.key", "front-proxy-ca.crt": "ca.crt", "front-proxy-ca.key": "ca.key",
	} {
		text, err := os.ReadFile(filepath.Join(sandbox, "api", "pki", from))
		require.NoError(s.t, err)
		require.NoError(s.t, os.WriteFile(filepath.Join(root, "etc/kubernetes/pki", to), text, 0o600))
	}
	text, err := os.ReadFile(filepath.Join(sandbox, "sandbox.json"))
	require.NoError(s.t, err)
	var state struct {
		API struct{ Ports struct{ Etcd int } }
	}
	require.NoError(s.t, json.Unmarshal(text, &state))
	return strconv.Itoa(state.API.Ports.Etcd)
}

// mount simulates the mounts of the machine's files in the pod: folders, and single files. A mounted file keeps its content after the start of the
// pod, even if the file is replaced later.
func (s *site) mount() {
	s.t.Helper()
	text, err := os.ReadFile("../../../templates/testdata/golden/cluster-backup.plain.yaml")
	require.NoError(s.t, err)
	var job batchv1.CronJob
	for _, doc := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(doc, "\nkind: CronJob\n") {
			require.NoError(s.t, yaml.Unmarshal([]byte(doc), &job))
		}
	}
	pod, mounted := job.Spec.JobTemplate.Spec.Template.Spec, 0
	for _, m := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if pod.Volumes[i].HostPath == nil {
			continue
		}
		assert.True(s.t, m.ReadOnly, m.Name)
		from, to := filepath.Join(s.disk, pod.Volumes[i].HostPath.Path), filepath.Join(s.args["root"], strings.TrimPrefix(m.MountPath, "/host"))
		require.NoError(s.t, os.MkdirAll(filepath.Dir(to), 0o755))
		show := os.Symlink
		if *pod.Volumes[i].HostPath.Type == corev1.HostPathFile {
			show = os.Link
		}
		require.NoError(s.t, show(from, to))
		mounted++
	}
	require.Equal(s.t, 2, mounted)
}

func (s *site) pushed() {
	s.t.Helper()
	files, err := config.ReadFiles("../../config/store/testdata/cluster")
	require.NoError(s.t, err)
	clean := func() {
		ctx := context.WithoutCancel(s.t.Context())
		api := s.cluster.Client.CoreV1()
		for _, err := range []error{
			api.ConfigMaps(kube.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			api.Secrets(kube.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			api.ConfigMaps(backup.NotesNamespace).Delete(ctx, backup.NotesName, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				s.t.Error(err)
			}
		}
	}
	clean()
	s.t.Cleanup(clean)
	s.give(files)
	_, err = s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: backup.NotesName}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func (s *site) give(files map[string][]byte) {
	s.t.Helper()
	copies := store.New(s.cluster.Client)
	d, err := copies.Draft(s.t.Context(), store.Candidate{Dir: "cluster", Files: files})
	require.NoError(s.t, err)
	_, err = copies.Push(s.t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(s.t, err)
}

func (s *site) push(old, text string) {
	s.t.Helper()
	require.NoError(s.t, s.cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(s.t.Context(), store.ConfigMapName, metav1.DeleteOptions{}))
	files, err := config.ReadFiles("../../config/store/testdata/cluster")
	require.NoError(s.t, err)
	for name := range files {
		files[name] = bytes.ReplaceAll(files[name], []byte(old), []byte(text))
	}
	s.give(files)
}

// history starts the job controller's server with an archive in SQLite.
func (s *site) history() {
	s.t.Helper()
	kept, err := archive.Open(s.t.Context(), archive.Options{Path: filepath.Join(s.t.TempDir(), "archive.db")})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, kept.Close()) })
	registry := prometheus.NewRegistry()
	jobs := httptest.NewServer(server.New(server.Options{Store: archive.Observe(kept, registry), Ready: func(context.Context) error { return nil },
		Metrics: registry, Token: func() string { return token }, Log: slog.New(slog.DiscardHandler)}).Handler())
	s.t.Cleanup(jobs.Close)
	s.secret("token", token+"\n")
	s.args["jobs"], s.args["token-file"] = jobs.URL, filepath.Join(s.secrets, "token")
}

// elsewhere starts a job controller's server whose history is in a database server.
func (s *site) elsewhere() {
	s.t.Helper()
	jobs := httptest.NewServer(server.New(server.Options{Store: noExport{}, Ready: func(context.Context) error { return nil },
		Metrics: prometheus.NewRegistry(), Token: func() string { return token }, Log: slog.New(slog.DiscardHandler)}).Handler())
	s.t.Cleanup(jobs.Close)
	s.args["jobs"] = jobs.URL
}

// noExport is an archive in PostgreSQL. It can't be exported.
type noExport struct{ archive.Store }

func (noExport) Export(context.Context, bool) (io.ReadCloser, int64, error) {
	return nil, 0, archive.ErrElsewhere
}

func (s *site) own() string {
	s.t.Helper()
	uid, notes, err := kube.Identity(s.t.Context(), s.cluster.Client, backup.NotesName)
	require.NoError(s.t, err)
	return backup.Of("pai", backup.ID(uid, notes[backup.NoteRestored]))
}

func (s *site) notes() map[string]string {
	s.t.Helper()
	notes, err := s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Get(s.t.Context(), backup.NotesName, metav1.GetOptions{})
	require.NoError(s.t, err)
	return notes.Data
}

func (s *site) note(key, text string) {
	s.t.Helper()
	_, err := s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Patch(s.t.Context(), backup.NotesName, types.MergePatchType, []byte(`{"data":{"`+key+`":"`+text+`"}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func (s *site) run() (string, error) {
	s.t.Helper()
	text, err := json.Marshal(s.settings)
	require.NoError(s.t, err)
	s.args["config"] = filepath.Join(s.t.TempDir(), "config.json")
	require.NoError(s.t, os.WriteFile(s.args["config"], text, 0o600))
	var args []string
	for name, value := range s.args {
		args = append(args, "--"+name+"="+value)
	}
	var out bytes.Buffer
	err = Run(s.t.Context(), args, &out)
	return out.String(), err
}

func (s *site) kept() (names []string) {
	s.t.Helper()
	all, err := os.ReadDir(s.dir)
	require.NoError(s.t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func (s *site) read(name string) (map[string]string, *backup.Manifest) {
	s.t.Helper()
	in, err := os.Open(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	defer in.Close()
	parts := map[string]string{}
	m, err := backup.Read(in, backup.Keys{Identities: []age.Identity{s.pair}}, func(name string, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		parts[name] = string(text)
		return err
	})
	require.NoError(s.t, err)
	return parts, m
}

func TestAClusterSavesItself(t *testing.T) {
	s := newSite(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, err := s.cluster.Client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "saved-by-itself"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ns, err := s.cluster.Client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
	own := backup.Of("pai", backup.ID(string(ns.UID), ""))
	old := backup.Name(own, time.Now().AddDate(0, 0, -9))
	ofOthers := []string{backup.Name("other", time.Now().AddDate(0, 0, -30))}
	for day := range 3 { // a twin's backups, and backups from before IDs existed, which may belong to another cluster
		ofOthers = append(ofOthers, backup.Name(backup.Of("pai", backup.ID(string(ns.UID), "elsewhere")), time.Now().AddDate(0, 0, -20-day)), backup.Name("pai", time.Now().AddDate(0, 0, -20-day)))
	}
	for _, name := range append([]string{old, backup.Name(own, time.Now().AddDate(0, 0, -1))}, ofOthers...) {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
	}
	log, err := s.run()
	require.NoError(t, err, log)
	assert.Contains(t, log, "saved")
	assert.NotContains(t, log, "level=WARN")
	assert.Contains(t, log, old, "it is deleted")
	assert.NotContains(t, s.kept(), old)
	assert.Subset(t, s.kept(), ofOthers)
	require.Len(t, s.kept(), 2+len(ofOthers), "its own, the one before, and other clusters'")

	latest := ""
	for _, name := range s.kept() {
		if f, ok := backup.Named(name); ok && f.IsOf(own) && backup.Name(own, f.Time) == name {
			latest = name // they are sorted
		}
	}
	parts, m := s.read(latest)
	assert.Equal(t, "pai", m.Cluster)
	assert.Regexp(t, `^v1\.`, m.Kubernetes)
	assert.Equal(t, "ip-10-0-0-2", m.Machines[1].Name)
	assert.Empty(t, m.Missing)
	for _, name := range config.Files() {
		want, err := os.ReadFile(filepath.Join("../../config/store/testdata/cluster", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), parts[backup.FolderConfig+name], "byte for byte, with its secrets")
	}
	require.NoError(t, cluster.CheckKeys(strings.NewReader(parts[backup.PartKeys])), "a restore takes them")
	assert.Contains(t, parts[backup.PartEtcd], "/registry/configmaps/default/saved-by-itself")
	assert.True(t, strings.HasPrefix(parts[backup.PartJobs], "SQLite format 3\x00"))

	notes, err := s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Get(t.Context(), backup.NotesName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, m.Time.Format(time.RFC3339), notes.Data[backup.Note])
	assert.Equal(t, m.Time.Format(time.RFC3339), notes.Data[backup.NoteHistory])
	assert.Equal(t, backup.Name(own, m.Time), latest)
	assert.Equal(t, own, backup.Of(m.Cluster, m.ID))
	assert.Equal(t, string(ns.UID), m.UID)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestTheEtcdOfAnotherMasterIsSavedWhereTheOwnIsNone uses the real etcd as the etcd of another master. The machine's own etcd is off or separated
// from the others. If it is separated, it responds with the error of etcd 3.6.
func TestTheEtcdOfAnotherMasterIsSavedWhereTheOwnIsNone(t *testing.T) {
	const own = "127.0.0.2"
	for name, c := range map[string]struct {
		member http.HandlerFunc
		says   string
	}{
		"it is off": {nil, "connection refused"},
		"it is cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"etcdserver: request timed out","code":14,"message":"etcdserver: request timed out"}`)
		}, "etcdserver: request timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.push("hostip: 10.0.0.1\n", "hostip: 127.0.0.1\n")
			s.args["etcd-host"] = own
			if c.member != nil {
				s.member(own, c.member)
			}
			log, err := s.run()
			require.NoError(t, err, log)
			assert.Contains(t, log, "etcd of another machine is saved")
			assert.Contains(t, log, c.says)
			parts, _ := s.read(s.kept()[0])
			assert.Contains(t, parts[backup.PartEtcd], "/registry/namespaces/kube-system")
		})
	}
}

// member starts an etcd member with a self-signed certificate at an address. It adds the certificate to the machine's CA certificates.
func (s *site) member(host string, answer http.HandlerFunc) {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(s.t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(host)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	require.NoError(s.t, err)
	file := filepath.Join(s.args["root"], "etc/kubernetes/pki/etcd/ca.crt")
	text, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(file, append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), 0o600))
	var lc net.ListenConfig
	l, err := lc.Listen(s.t.Context(), "tcp", net.JoinHostPort(host, s.args["etcd-port"]))
	require.NoError(s.t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}, TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
}

// TestAKeyThatIsReplacedMeanwhileIsNoticed replaces a key file while the program reads etcd's database. A concurrent "cluster secrets rotate" would
// do the same.
func TestAKeyThatIsReplacedMeanwhileIsNoticed(t *testing.T) {
	const own = "127.0.0.3"
	s := newSite(t)
	pki := filepath.Join(s.disk, "etc/kubernetes/pki/etcd")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key"))
	require.NoError(t, err)
	etcd := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: "127.0.0.1:" + s.args["etcd-port"]})
	etcd.Transport = &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}
	s.args["etcd-host"] = own
	s.member(own, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/snapshot") {
			file := filepath.Join(s.disk, "etc/paictl/encryption.yaml")
			assert.NoError(t, os.WriteFile(file+".new", []byte("another key"), 0o600))
			assert.NoError(t, os.Rename(file+".new", file))
		}
		// Read the whole request first, because etcd closes the connection if it responds before the body is read.
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		etcd.ServeHTTP(w, r)
	})
	_, err = s.run()
	require.ErrorContains(t, err, "the cluster's keys changed while it was saved")
	assert.Empty(t, s.kept())
}

func TestABackupOfItselfWithoutAHistorySaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(s *site)
		says       string
		named      bool // says so in its name
		noted, was string
	}{
		"no job controller":        {func(s *site) { s.args["jobs"] = "" }, "there is no job controller", true, "", ""},
		"its service is gone":      {func(s *site) { s.args["jobs"] = "http://job-controller.invalid" }, "there is no job controller", true, "", ""},
		"it is unavailable":        {func(s *site) { s.args["jobs"] = "http://127.0.0.1:1" }, "connection refused", true, "never", ""},
		"it has another token":     {func(s *site) { s.secret("token", "another") }, "403 Forbidden", true, "2026-11-01T02:00:00Z", "2026-11-01T02:00:00Z"},
		"the history is elsewhere": {func(s *site) { s.elsewhere() }, "PostgreSQL, which is backed up separately", false, "now", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c.change(s)
			s.settings.Keep.Last = 1
			own := s.own()
			with := backup.Name(own, time.Now().AddDate(0, 0, -9))
			for _, name := range []string{with, backup.NameWithoutHistory(own, time.Now().AddDate(0, 0, -5)), backup.Name(own, time.Now().AddDate(0, 0, -10))} {
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
			}
			if c.was != "" {
				s.note(backup.NoteHistory, c.was)
			}
			log, err := s.run()
			require.NoError(t, err)
			assert.Contains(t, log, c.says)
			kept := s.kept()
			made := kept[len(kept)-1]
			if c.named {
				assert.Equal(t, []string{with, made}, kept, "the latest with a history stays")
			} else {
				assert.Equal(t, []string{made}, kept)
			}
			f, ok := backup.Named(made)
			require.True(t, ok, made)
			assert.Equal(t, c.named, f.WithoutHistory)
			_, m := s.read(made)
			require.Len(t, m.Missing, 1)
			assert.Contains(t, m.Missing[0].Why, c.says)
			want := c.noted
			if want == "now" {
				want = m.Time.Format(time.RFC3339)
			}
			assert.Equal(t, want, s.notes()[backup.NoteHistory])
			assert.Equal(t, m.Time.Format(time.RFC3339), s.notes()[backup.Note])
		})
	}
}

func TestABackupOfItselfThatFailsLeavesNothingAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(s *site)
		says, remedy string
	}{
		"no recipients":             {func(s *site) { s.settings.Recipients = nil }, "no backup is made without recipients", "age-keygen"},
		"no recipient":              {func(s *site) { s.settings.Recipients = []string{"age1x"} }, "\"age1x\" is not a recipient", "age-keygen"},
		"a folder of the container": {func(s *site) { s.settings.To = s.dir }, "is not a place outside of the cluster", "s3://"},
		"no user":                   {func(s *site) { s.settings.To = strings.Replace(s.settings.To, "keeper@", "", 1) }, "names no user", "ssh://USER@"},
		"no private key":            {func(s *site) { _ = os.Remove(filepath.Join(s.secrets, filePrivateKey)) }, "no such file", "ssh.privateKey"},
		"an unknown machine":        {func(s *site) { s.settings.SSH.KnownHosts = "" }, "isn't known", "ssh-keyscan"},
		"another machine": {func(s *site) {
			s.settings.SSH.KnownHosts = "elsewhere " + strings.SplitN(s.keeper.KnownHosts(), " ", 2)[1]
		}, "host key", ""},
		"no configuration": {func(s *site) {
			_ = s.cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(s.t.Context(), store.ConfigMapName, metav1.DeleteOptions{})
		}, "the cluster has no configuration", "config push"},
		"a key is missing": {func(s *site) { _ = os.Remove(filepath.Join(s.args["root"], "etc/kubernetes/pki/sa.key")) }, "/etc/kubernetes/pki/sa.key is missing on this machine", ""},
		"a key that isn't the certificate's": {func(s *site) {
			pki := filepath.Join(s.args["root"], "etc/kubernetes/pki")
			own, err := os.ReadFile(filepath.Join(pki, "ca.key"))
			require.NoError(s.t, err)
			require.NoError(s.t, os.WriteFile(filepath.Join(pki, "etcd/ca.key"), own, 0o600))
		}, "/etc/kubernetes/pki/etcd/ca.crt and /etc/kubernetes/pki/etcd/ca.key don't belong together", "openssl"},
		"etcd is unavailable": {func(s *site) { s.args["etcd-port"] = "1" }, "etcd's database", ""},
		"another etcd": {func(s *site) {
			other := httptest.NewTLSServer(nil)
			s.t.Cleanup(other.Close)
			_, s.args["etcd-port"], _ = net.SplitHostPort(other.Listener.Addr().String())
		}, "certificate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c.change(s)
			log, err := s.run()
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, hint.Of(err), c.remedy)
			assert.Empty(t, s.kept())
			assert.NotContains(t, log+err.Error(), "OPENSSH PRIVATE KEY")
			notes, err := s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Get(t.Context(), backup.NotesName, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Empty(t, notes.Data, "it wasn't made")
		})
	}
}

// An error after the backup was stored is only logged. Otherwise Kubernetes would make another backup.
func TestABackupIsGoodWhereTheClusterCannotBeToldOfIt(t *testing.T) {
	s := newSite(t)
	require.NoError(t, s.cluster.Client.CoreV1().ConfigMaps(backup.NotesNamespace).Delete(t.Context(), backup.NotesName, metav1.DeleteOptions{}))
	log, err := s.run()
	require.NoError(t, err)
	assert.Contains(t, log, "the cluster's record of the backup couldn't be written")
	assert.Len(t, s.kept(), 1)
}

func TestSettingsWithAMistakeAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	_, err := readConfig(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte(`{"too": "s3://backups"}`), 0o600))
	_, err = readConfig(file)
	require.ErrorContains(t, err, `unknown field "too"`)
	require.Error(t, Run(t.Context(), []string{"now"}, io.Discard))
	require.Error(t, Run(t.Context(), []string{"--never"}, io.Discard))
}
