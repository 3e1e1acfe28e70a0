package backup

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestTheHistoryOfAnotherClusterIsTakenOnlyIfThatIsSaid(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "5b1e"}})
	for name, c := range map[string]struct {
		uid           string
		other         bool
		refuses, says string
	}{
		"the same cluster, or the one from which it was restored": {uid: "5b1e"},
		"another one of that name":                                {uid: "77aa", refuses: "the backup belongs to another cluster with the name pai: its namespace kube-system has the UID 77aa, and that of this cluster 5b1e"},
		"another one, and that is wanted":                         {uid: "77aa", other: true, says: "another cluster with the name pai"},
		"a backup of before UIDs were noted":                      {says: "only the name was compared"},
	} {
		t.Run(name, func(t *testing.T) {
			f := cmdutil.New("v0.0.0-test")
			streams, _, _, stderr := iostreams.Test()
			f.IO = streams
			m := &backup.Manifest{Head: backup.Head{Cluster: "pai", UID: c.uid}}
			err := (&RestoreOptions{Factory: f, OtherCluster: c.other}).sameUID(t.Context(), client, m)
			if c.refuses != "" {
				require.ErrorContains(t, err, c.refuses)
				assert.Contains(t, hint.Of(err), "--other-cluster")
				return
			}
			require.NoError(t, err)
			if c.says == "" {
				assert.Empty(t, stderr.String())
			} else {
				assert.Contains(t, stderr.String(), c.says)
			}
		})
	}
}

func TestWhereTheHistoryIsPutIsSaidOrWhyNot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../config/store/testdata/cluster")))
	layoutFile, servicesFile := filepath.Join(dir, config.LayoutFile), filepath.Join(dir, config.ServicesFile)
	machines, err := os.ReadFile(layoutFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(layoutFile, bytes.Replace(machines, []byte("- worker"), []byte("- master"), 1), 0o600))
	was, err := os.ReadFile(servicesFile)
	require.NoError(t, err)
	names := []string{"ip-10-0-0-1", "ip-10-0-0-2"}
	history := backup.Part{Name: backup.PartJobs, Size: 3, SHA256: "abc"}
	for name, c := range map[string]struct {
		services string
		first    string // the master that founds the cluster
		machines []backup.Machine
		parts    []backup.Part
		on, left string
	}{
		"it has one":                     {first: names[0], parts: []backup.Part{history}, on: names[0]},
		"it has none":                    {first: names[0]},
		"another machine founds it":      {first: names[1], parts: []backup.Part{history}, left: "the job controller's volume will be on " + names[0] + ", and " + names[1] + " founds the cluster"},
		"a machine of before has it":     {first: names[0], machines: []backup.Machine{{Name: names[1]}}, parts: []backup.Part{history}, left: "may be on a different machine than " + names[0]},
		"the service is off":             {services: "job-controller: {enabled: false}\n", first: names[0], parts: []backup.Part{history}, left: "the service job-controller is off"},
		"the history goes to PostgreSQL": {services: "job-controller: {postgresql: {enabled: true, host: db.example.org, password: x}}\n", first: names[0], parts: []backup.Part{history}, left: "PostgreSQL"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(servicesFile, append(slices.Clone(was), c.services...), 0o600))
			loaded, err := config.Load(dir)
			require.NoError(t, err)
			s := &session.Session{Config: loaded, Spec: &engine.Spec{Nodes: []*engine.Node{{Machine: layout.Machine{Hostname: c.first}, ControlPlane: true}}}}
			on, left, err := historyOnDisk(t.Context(), &backup.Manifest{Machines: c.machines, Parts: c.parts}, dir, s)
			require.NoError(t, err)
			if c.left == "" {
				assert.Empty(t, left)
			} else {
				assert.Contains(t, left, c.left)
			}
			if c.on == "" {
				assert.Nil(t, on)
				return
			}
			require.NotNil(t, on)
			assert.Equal(t, c.on, on.Node)
			assert.Equal(t, history.Size, on.Size)
		})
	}
}

func TestWhatIsLeftToDoAfterARestore(t *testing.T) {
	opts := &RestoreOptions{File: "pai.paictl-backup", Keys: keyFlags{Identities: []string{"key.txt"}}}
	opts.Flags.Dir = "./cluster"
	assert.NotContains(t, opts.next(""), "history")
	left := opts.next("m1 has another one already, which stays")
	assert.Contains(t, left, "  paictl cluster restore pai.paictl-backup -p ./cluster --identity key.txt --history\n")
	assert.Contains(t, left, "m1 has another one already, which stays")
}

func TestABackupSaysWhyItHasNoHistoryOfJobs(t *testing.T) {
	const missing = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"services \"job-controller\" not found"}`
	for name, c := range map[string]struct {
		code          int
		answer        string
		service       bool
		without, fine error
	}{
		"it is there":             {code: 200, answer: "the history", service: true},
		"it is elsewhere":         {code: 501, answer: `{"code":"Elsewhere","message":"the archive is in PostgreSQL"}`, service: true, fine: backup.ErrHistoryElsewhere},
		"no service of that name": {code: 404, answer: missing, without: backup.ErrNoController},
		"no pod of it is ready":   {code: 503, answer: "no endpoints available", service: true, without: job.ErrAway},
		"it may not be asked":     {code: 403, answer: `{"code":"Forbidden","message":"a token is needed"}`, service: true, without: job.ErrNoController},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/pai-system/"); {
				case strings.HasSuffix(path, "/proxy/v1/archive"):
					w.Header().Set("Content-Length", strconv.Itoa(len(c.answer)))
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, c.answer)
				case path == "services/job-controller" && c.service:
					_, _ = io.WriteString(w, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"job-controller"}}`)
				case strings.HasPrefix(path, "secrets/"):
					_, _ = io.WriteString(w, `{"kind":"Secret","apiVersion":"v1","data":{"token":"b3Blbg=="}}`)
				default:
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, missing)
				}
			}))
			t.Cleanup(api.Close)
			config := &rest.Config{Host: api.URL}
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			w, err := backup.NewWriter(&bytes.Buffer{}, backup.Seal{Plain: true}, backup.Head{Cluster: "pai"})
			require.NoError(t, err)
			err = addJobs(t.Context(), &kube.Cluster{Config: config, Client: client}, w)
			m, cerr := w.Close()
			require.NoError(t, cerr)
			if c.without != nil {
				var lacks *backup.NoHistoryError
				require.ErrorAs(t, err, &lacks)
				require.ErrorIs(t, err, c.without)
				assert.Equal(t, !c.service, errors.Is(err, backup.ErrNoController))
				return
			}
			require.NoError(t, err)
			if c.fine != nil {
				require.Len(t, m.Missing, 1)
				assert.Contains(t, m.Missing[0].Why, c.fine.Error())
				return
			}
			assert.Equal(t, backup.PartJobs, m.Parts[0].Name)
			assert.Empty(t, m.Missing)
		})
	}
}
