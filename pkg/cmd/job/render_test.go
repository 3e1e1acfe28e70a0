package job

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// paictl runs "paictl job ..." in this process.
func paictl(t *testing.T, env map[string]string, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("v0.0.0-test")
	streams, _, stdout, stderr := iostreams.Test()
	f.IO, f.Getenv = streams, func(name string) string { return env[name] }
	cmd := NewCmdJob(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// created is a front for the API server. It keeps the Framework that a client creates, exactly as the client sent it.
type created struct {
	sync.Mutex
	framework *v1.Framework
}

func (c *created) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/frameworks") {
			body, _ := io.ReadAll(r.Body) // a body that is cut isn't valid JSON
			r.Body = io.NopCloser(bytes.NewReader(body))
			c.Lock()
			c.framework = &v1.Framework{}
			_ = json.Unmarshal(body, c.framework)
			c.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

func TestRenderPrintsWhatSubmitCreates(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	code := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/jobs") {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Error{Code: "NotFound", Message: "no such job"})
		}
	})
	made := &created{}
	h, err := jobtest.Handler(cluster.Config, jobtest.Services{api.Service: code})
	require.NoError(t, err)
	kubeconfig := jobtest.Kubeconfig(t, made.before(h))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.py"), []byte("print(1)\n"), 0o644))
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`protocolVersion: 2
name: train
type: job
parameters: {epochs: 3}
secrets: {token: hunter2, registry: hunter3}
prerequisites:
  - {name: i, type: dockerimage, uri: "registry.example/train:1", auth: {username: me, password: <% $secrets.registry %>, registryuri: registry.example}}
taskRoles:
  Worker_1:
    instances: 2
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["train --epochs <% $parameters.epochs %> --token <% $secrets.token %>"]
`), 0o600))
	for name, flags := range map[string][]string{
		"a":     nil,
		"b":     {"--set", "epochs=9"},
		"c":     {"--group", "vision"},
		"d":     {"--code", dir},
		"e":     {"--set", "epochs=7", "--group", "vision", "--code", dir},
		"by-me": {"--user", "bob"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			flags := append([]string{file, "--name", "render-" + name, "--kubeconfig", kubeconfig}, flags...)
			env := map[string]string{"PAICTL_USER": "carol"}
			if name == "a" { // its group is a setting
				env["PAICTL_GROUP"] = "speech"
			}
			out, _, err := paictl(t, env, append([]string{"render", "--show-secrets", "-o", "json"}, flags...)...)
			require.NoError(t, err)
			var list struct{ Items []json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(out), &list))
			rendered := render.Objects{Framework: &v1.Framework{}}
			require.NoError(t, json.Unmarshal(list.Items[0], rendered.Framework))
			for _, item := range list.Items[1:] {
				s := &corev1.Secret{}
				require.NoError(t, json.Unmarshal(item, s))
				rendered.Secrets = append(rendered.Secrets, s)
			}
			require.Len(t, rendered.Secrets, 2)

			_, stderr, err := paictl(t, env, append([]string{"submit"}, flags...)...)
			require.NoError(t, err, stderr)
			assert.Equal(t, made.framework, rendered.Framework)
			kept, err := cluster.Client.CoreV1().Secrets(kube.JobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + made.framework.Name})
			require.NoError(t, err)
			require.Len(t, kept.Items, len(rendered.Secrets))
			for _, want := range rendered.Secrets {
				got, err := cluster.Client.CoreV1().Secrets(kube.JobNamespace).Get(t.Context(), want.Name, metav1.GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, []any{want.Type, want.Data, want.Labels}, []any{got.Type, got.Data, got.Labels})
			}

			out, _, err = paictl(t, env, append([]string{"render"}, flags...)...)
			require.NoError(t, err)
			assert.NotContains(t, out, "hunter")
			assert.Contains(t, out, "name: "+made.framework.Name)
		})
	}
}

func TestRenderRefusesWhatSubmitRefuses(t *testing.T) {
	for _, args := range [][]string{{"--set", "epochs"}, {"--set", "=1"}} {
		for _, verb := range []string{"render", "submit"} {
			_, _, err := paictl(t, nil, append([]string{verb, "job.yaml"}, args...)...)
			require.ErrorContains(t, err, "write NAME=VALUE", verb)
		}
	}
}
