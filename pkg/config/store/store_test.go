package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// secrets contains the secrets in testdata/cluster. injected contains additional secret paths.
var (
	secrets  = []string{"hunter2", "old-registry-password"}
	injected = []strictyaml.Path{{"grafana", "injected"}}
)

func files(t testing.TB) map[string][]byte {
	t.Helper()
	out, err := config.ReadFiles("testdata/cluster")
	require.NoError(t, err)
	return out
}

// edit returns a copy of the files in which a text in one file is replaced.
func edit(t testing.TB, in map[string][]byte, name, from, to string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for n, text := range in {
		out[n] = text
	}
	require.Contains(t, string(in[name]), from)
	out[name] = bytes.ReplaceAll(in[name], []byte(from), []byte(to))
	return out
}

func newStore(client kubernetes.Interface) *store.Store {
	s := store.New(client)
	s.SecretPaths = func(*config.Cluster) []strictyaml.Path { return injected }
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Now = func() time.Time { clock = clock.Add(time.Minute); return clock }
	return s
}

func push(ctx context.Context, s *store.Store, c store.Candidate, by string) (store.Revision, error) {
	d, err := s.Draft(ctx, c)
	if err != nil {
		return store.Revision{}, err
	}
	return s.Push(ctx, d, store.Entry{By: by, Message: "by " + by})
}

func mustPush(t testing.TB, s *store.Store, c store.Candidate) store.Revision {
	t.Helper()
	r, err := push(t.Context(), s, c, "ada@desk")
	require.NoError(t, err)
	return r
}

func base(r store.Revision) *store.Base {
	b := store.BaseOf(r)
	return &b
}

func TestAPushedConfigurationComesBackByteForByte(t *testing.T) {
	s := newStore(fake.NewClientset())
	r := mustPush(t, s, store.Candidate{Dir: "cluster", Files: files(t)})
	assert.Equal(t, 1, r.Number)
	assert.Equal(t, config.Files(), r.Files)
	c, err := s.Pull(t.Context())
	require.NoError(t, err)
	for name, text := range files(t) {
		assert.Equal(t, string(text), string(c.Files[name]), name)
		assert.NotContains(t, string(c.Masked()[name]), "hunter2", name)
	}
	assert.True(t, c.Private(config.LayoutFile))
	assert.False(t, c.Private(config.RolesFile))

	cluster, at, err := s.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "hunter2-of-ssh", cluster.Layout.SSH.Password.Reveal())
	assert.Equal(t, "hunter2's registry", cluster.Services.Cluster.DockerRegistry.Password.Reveal())
	assert.Equal(t, 1, at.Number)
	assert.Equal(t, "ada@desk", at.By)
	id, err := s.ID(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "pai", id)
}

func TestNoSecretIsInAnyConfigMap(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", "hunter2-newer"), Base: base(r)})
	list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	for i := range list.Items {
		text := list.Items[i].String()
		for _, s := range secrets {
			assert.NotContains(t, text, s)
		}
	}
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), kube.SystemNamespace, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "privileged", namespace.Labels["pod-security.kubernetes.io/enforce"])
}

func TestADiffShowsThatASecretChangedAndNotWhatItIs(t *testing.T) {
	s := newStore(fake.NewClientset())
	mustPush(t, s, store.Candidate{Files: files(t)})
	after := edit(t, files(t), config.LayoutFile, "hunter2-of-worker", "hunter3")
	after = edit(t, after, config.LayoutFile, "vcore: 16", "vcore: 32")
	after = edit(t, after, config.ServicesFile, "\"hunter2-of-grafana\"", "hunter2-of-grafana")
	after = edit(t, after, config.ServicesFile, "  injected: hunter2-by-schema\n", "")
	r, changes, err := s.Diff(t.Context(), "cluster", after)
	require.NoError(t, err)
	assert.Equal(t, 1, r.Number)
	require.Len(t, changes, 2)
	assert.Equal(t, "--- cluster/layout.yaml\n+++ folder/layout.yaml\n@@ -14,7 +14,7 @@\n   unknown:\n     mem: 64Gi\n     cpu:\n-      vcore: 16\n+      vcore: 32\n     os: debian12\n     discovered: true\n # The machines, in any order.\n", changes[0].Diff)
	assert.Equal(t, []store.SecretChange{{Field: "machine-list[ip-10-0-0-2].ssh.password", Action: "changed"}}, changes[0].Secrets)
	assert.Equal(t, []store.SecretChange{{Field: "grafana.injected", Action: "removed"}}, changes[1].Secrets, "other quotes are no other secret")
	assert.Contains(t, changes[1].Diff, "-  injected: ********\n")
	assert.NotContains(t, fmt.Sprint(changes), "hunter")
}

func TestOnlyTheGivenFilesArePushed(t *testing.T) {
	s := newStore(fake.NewClientset())
	_, err := s.Draft(t.Context(), store.Candidate{Files: map[string][]byte{config.LayoutFile: files(t)[config.LayoutFile]}})
	require.EqualError(t, err, "the cluster has no configuration yet that layout.yaml could be merged into")
	r := mustPush(t, s, store.Candidate{Files: files(t)})

	layout := edit(t, files(t), config.LayoutFile, "vcore: 16", "vcore: 32")[config.LayoutFile]
	r = mustPush(t, s, store.Candidate{Files: map[string][]byte{config.LayoutFile: layout}, Base: base(r)})
	assert.Equal(t, []string{config.LayoutFile}, r.Files)
	c, err := s.Pull(t.Context())
	require.NoError(t, err)
	assert.Equal(t, string(layout), string(c.Files[config.LayoutFile]))
	assert.Equal(t, string(files(t)[config.ServicesFile]), string(c.Files[config.ServicesFile]))

	// The rules are applied to all four files after the change, and not only to the pushed file.
	roles := edit(t, files(t), config.RolesFile, "worker:", "helper:")[config.RolesFile]
	_, err = s.Draft(t.Context(), store.Candidate{Files: map[string][]byte{config.RolesFile: roles}, Base: base(r)})
	require.ErrorContains(t, err, "worker")
}

func TestWhatIsRefusedLeavesTheCopyAsItIs(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, s *store.Store, c *store.Candidate)
		want   string
	}{
		"a broken rule": {func(t *testing.T, _ *store.Store, c *store.Candidate) {
			c.Files = edit(t, c.Files, config.LayoutFile, "hostip: 10.0.0.2", "hostip: 10.0.0.1")
		}, "layout/duplicate-hostip"},
		"a rule of the charts": {func(_ *testing.T, s *store.Store, _ *store.Candidate) {
			s.Checks = []config.Check{func(c *config.Cluster) config.Findings {
				return config.Findings{c.Finding(config.ServicesFile, strictyaml.Error, strictyaml.Path{"grafana"}, "chart/schema", "no such key", "")}
			}}
		}, "chart/schema"},
		"a wrong form": {func(t *testing.T, _ *store.Store, c *store.Candidate) {
			c.Files = edit(t, c.Files, config.LayoutFile, "machine-list:", "machines:")
		}, "yaml/unknown-key"},
		"another cluster's id": {func(t *testing.T, _ *store.Store, c *store.Candidate) {
			c.Files, c.Force = edit(t, c.Files, config.ServicesFile, "cluster-id: pai", "cluster-id: other"), true
		}, `this is the cluster "pai", but the configuration is for the cluster "other"`},
		"no base": {func(_ *testing.T, _ *store.Store, c *store.Candidate) { c.Base = nil },
			"the cluster has a configuration that this folder is not based on: revision 2 was pushed by ada@desk on 2026-01-02T03:06:05Z (layout.yaml): by ada@desk"},
		"an old base": {func(_ *testing.T, _ *store.Store, c *store.Candidate) { c.Base.Revision = 1 },
			"the cluster's configuration was changed since revision 1, on which this folder is based: revision 2 was pushed by ada@desk"},
		"a base of the future": {func(_ *testing.T, _ *store.Store, c *store.Candidate) { c.Base.Revision = 3 },
			"it may have been restored from a backup"},
		"a base of another cluster": {func(_ *testing.T, _ *store.Store, c *store.Candidate) { c.Base.UID = "other" },
			"the folder is based on the configuration of another cluster with the same id \"pai\""},
		"another source": {func(_ *testing.T, _ *store.Store, c *store.Candidate) { c.Base, c.Source = nil, "git::https://g/r" },
			"the cluster's configuration came from elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			s := newStore(client)
			setUID(client)
			mustPush(t, s, store.Candidate{Files: files(t)})
			r := mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "vcore: 16", "vcore: 8"), Force: true})
			before := snapshot(t, client)
			c := store.Candidate{Dir: "cluster", Files: files(t), Base: base(r)}
			tt.change(t, s, &c)
			_, err := push(t.Context(), s, c, "eve@laptop")
			require.ErrorContains(t, err, tt.want)
			if findings := (config.Findings)(nil); !errors.As(err, &findings) {
				assert.NotEmpty(t, hint.Of(err))
			}
			assert.Equal(t, before, snapshot(t, client))
		})
	}
}

// setUID sets a UID for created ConfigMaps, because the fake API doesn't set UIDs.
func setUID(client *fake.Clientset) {
	client.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap).UID = "uid-1"
		return false, nil, nil
	})
}

func snapshot(t testing.TB, client kubernetes.Interface) string {
	t.Helper()
	maps, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	all, err := client.CoreV1().Secrets(kube.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return maps.String() + all.String()
}

func TestTheSameFilesAreNotPushedAgain(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	mustPush(t, s, store.Candidate{Files: files(t)})
	before := snapshot(t, client)
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	assert.Equal(t, 1, r.Number, "a folder that is the same needs no base")
	assert.Equal(t, before, snapshot(t, client))
}

func TestTheClusterIDChangesOnlyWhenThatIsSaid(t *testing.T) {
	s := newStore(fake.NewClientset())
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	r = mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.ServicesFile, "cluster-id: pai", "cluster-id: other"), Base: base(r), Rename: true})
	assert.Equal(t, "other", r.ClusterID)
}

func TestAPushFromTheSameSourceGoesOn(t *testing.T) {
	s := newStore(fake.NewClientset())
	const source = "git::https://g.example/r.git//cluster?ref=main"
	mustPush(t, s, store.Candidate{Files: files(t), Source: source})
	r := mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "vcore: 16", "vcore: 8"), Source: source})
	assert.Equal(t, 2, r.Number)
	r = mustPush(t, s, store.Candidate{Files: files(t), Force: true})
	_, err := push(t.Context(), s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "vcore: 16", "vcore: 9"), Source: source}, "ci@ci")
	require.ErrorContains(t, err, "came from elsewhere: revision 3", "after %v", r)
}

func TestAWrongClusterIsNoticedOnTheFirstPush(t *testing.T) {
	s := newStore(fake.NewClientset())
	_, err := s.Draft(t.Context(), store.Candidate{Files: files(t), Base: &store.Base{ClusterID: "pai", Revision: 4, UID: "x"}})
	require.ErrorContains(t, err, "the folder is based on revision 4 of another cluster's configuration: this cluster has no configuration")
}

func TestThereIsNothingToReadBeforeTheFirstPush(t *testing.T) {
	s := newStore(fake.NewClientset())
	_, err := s.Pull(t.Context())
	require.ErrorIs(t, err, store.ErrNone)
	_, _, err = s.Load(t.Context())
	require.ErrorIs(t, err, store.ErrNone)
	_, err = s.History(t.Context())
	require.ErrorIs(t, err, store.ErrNone)
	_, err = s.RollbackDraft(t.Context(), 1)
	require.ErrorIs(t, err, store.ErrNone)
	_, _, err = s.Diff(t.Context(), "d", files(t))
	require.ErrorIs(t, err, store.ErrNone)
	assert.NotEmpty(t, hint.Of(err))
}

// A push that is interrupted at any write must not change the stored configuration. The next push must succeed.
func TestAPushThatIsCutOffLeavesTheOldCopy(t *testing.T) {
	for _, verb := range []string{"update secrets", "create configmaps", "update configmaps"} {
		t.Run("at "+verb, func(t *testing.T) {
			client := fake.NewClientset()
			s := newStore(client)
			r := mustPush(t, s, store.Candidate{Files: files(t)})
			cut := true
			v, resource, _ := strings.Cut(verb, " ")
			client.PrependReactor(v, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return cut, nil, errors.New("killed")
			})
			next := store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", "hunter3"), Base: base(r)}
			_, err := push(t.Context(), s, next, "ada@desk")
			require.ErrorContains(t, err, "killed")
			cluster, at, err := s.Load(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, at.Number)
			assert.Equal(t, "hunter2-of-ssh", cluster.Layout.SSH.Password.Reveal())

			cut = false
			r = mustPush(t, s, next)
			assert.Equal(t, 2, r.Number)
			cluster, _, err = s.Load(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "hunter3", cluster.Layout.SSH.Password.Reveal())
		})
	}
}

func TestASecretThatIsWrittenByTwoAtOnceIsWrittenAgain(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	conflicts := 0
	client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return conflicts == 1, nil, apierrors.NewConflict(corev1.Resource("secrets"), store.SecretName, errors.New("changed"))
	})
	mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", "hunter3"), Base: base(r)})
	assert.Equal(t, 2, conflicts)
}

func TestTheLastTenRevisionsAreKept(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	var r store.Revision
	for i := range 13 {
		c := store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", fmt.Sprintf("hunter2-number-%d", i+1))}
		if i > 0 {
			c.Base = base(r)
		}
		r = mustPush(t, s, c)
	}
	history, err := s.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, store.Keep)
	assert.Equal(t, 13, history[0].Number)
	assert.Equal(t, 4, history[9].Number)
	assert.Equal(t, []string{config.LayoutFile}, history[9].Files)
	assert.Equal(t, "by ada@desk", history[9].Message)
	old, err := s.At(t.Context(), 4)
	require.NoError(t, err)
	assert.Contains(t, string(old.Files[config.LayoutFile]), "password: hunter2-number-4\n")
	_, err = s.At(t.Context(), 3)
	require.EqualError(t, err, "revision 3 does not exist")

	secret, err := client.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), store.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Len(t, secret.Data, store.Keep, "one entry for each revision")
}

func TestARollbackIsANewRevision(t *testing.T) {
	s := newStore(fake.NewClientset())
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", "hunter3"), Base: base(r)})
	d, err := s.RollbackDraft(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, []store.FileChange{{File: config.LayoutFile, Secrets: []store.SecretChange{{Field: "ssh.password", Action: "changed"}}}}, d.Changes)
	r, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)
	assert.Equal(t, 3, r.Number)
	c, err := s.Pull(t.Context())
	require.NoError(t, err)
	assert.Equal(t, string(files(t)[config.LayoutFile]), string(c.Files[config.LayoutFile]))
}

func TestARollbackDoesNotChangeTheClusterID(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	r := mustPush(t, s, store.Candidate{Files: files(t)})
	mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.ServicesFile, "cluster-id: pai", "cluster-id: other"), Base: base(r), Rename: true})
	before := snapshot(t, client)
	_, err := s.RollbackDraft(t.Context(), 1)
	require.EqualError(t, err, `in revision 1 the cluster's id was "pai"; now it is "other"`)
	assert.Contains(t, hint.Of(err), "paictl config pull -o DIR --revision 1")
	assert.Contains(t, hint.Of(err), "--rename-cluster")
	assert.Equal(t, before, snapshot(t, client))
}

func TestACopyThatSomethingElseChangedIsNotUsed(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, client kubernetes.Interface){
		"a file was edited": func(t *testing.T, client kubernetes.Interface) {
			cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), store.ConfigMapName, metav1.GetOptions{})
			require.NoError(t, err)
			cm.Data[config.LayoutFile] += "# edited\n"
			_, err = client.CoreV1().ConfigMaps(kube.SystemNamespace).Update(t.Context(), cm, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
		"a file was removed": func(t *testing.T, client kubernetes.Interface) {
			cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), store.ConfigMapName, metav1.GetOptions{})
			require.NoError(t, err)
			delete(cm.Data, config.LayoutFile)
			_, err = client.CoreV1().ConfigMaps(kube.SystemNamespace).Update(t.Context(), cm, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
		"the Secret was deleted": func(t *testing.T, client kubernetes.Interface) {
			require.NoError(t, client.CoreV1().Secrets(kube.SystemNamespace).Delete(t.Context(), store.SecretName, metav1.DeleteOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			s := newStore(client)
			r := mustPush(t, s, store.Candidate{Files: files(t)})
			damage(t, client)
			_, _, err := s.Load(t.Context())
			require.Error(t, err)
			assert.Contains(t, hint.Of(err), "--force")
			_, err = push(t.Context(), s, store.Candidate{Files: files(t), Base: base(r)}, "ada@desk")
			require.Error(t, err)
			mustPush(t, s, store.Candidate{Files: files(t), Force: true})
			c, err := s.Pull(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 2, c.Revision.Number)
		})
	}
}

func TestAForeignConfigMapIsLeftAlone(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: store.ConfigMapName, Namespace: kube.SystemNamespace}})
	_, err := newStore(client).Draft(t.Context(), store.Candidate{Files: files(t), Force: true})
	require.EqualError(t, err, "ConfigMap pai-configuration in pai-system was not made by paictl")
}

func TestASecretInTheOpenIsWarnedAbout(t *testing.T) {
	s := newStore(fake.NewClientset())
	f := edit(t, files(t), config.RolesFile, "description: runs jobs", "description: log in with hunter2-of-ssh")
	d, err := s.Draft(t.Context(), store.Candidate{Dir: "cluster", Files: f})
	require.NoError(t, err)
	require.Len(t, d.Warnings, 1)
	assert.Equal(t, "cluster/k8s-role-definition.yaml:21:1: warning: the value of ssh.password in layout.yaml also occurs here as plain text [secret/in-the-open]", d.Warnings[0].String())
}

func TestALargeConfigurationIsCompressedOrRefused(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	f := edit(t, files(t), config.KubernetesFile, "10.244.0.0/16", "10.64.0.0/10")
	f[config.LayoutFile] = manyMachines(f[config.LayoutFile], 5000)
	mustPush(t, s, store.Candidate{Files: f})
	cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), store.ConfigMapName, metav1.GetOptions{})
	require.NoError(t, err)
	t.Logf("%d KiB of layout.yaml became %d KiB", len(f[config.LayoutFile])>>10, len(cm.BinaryData[config.LayoutFile+".gz"])>>10)
	assert.NotContains(t, cm.Data, config.LayoutFile)
	assert.Contains(t, cm.Data, config.RolesFile, "small files stay readable")
	c, err := s.Pull(t.Context())
	require.NoError(t, err)
	assert.Equal(t, f[config.LayoutFile], c.Files[config.LayoutFile])

	noise := make([]byte, 3<<20)
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = 'a' + byte(state>>27)%26
	}
	f[config.RolesFile] = append(f[config.RolesFile], "# "+string(noise)+"\n"...)
	_, err = push(t.Context(), s, store.Candidate{Files: f, Force: true}, "ada@desk")
	require.ErrorContains(t, err, "but Kubernetes stores at most 1024 KiB in one object")
}

func manyMachines(layout []byte, n int) []byte {
	var b bytes.Buffer
	b.Write(layout)
	for i := range n {
		fmt.Fprintf(&b, "  - hostname: gpu-%d\n    hostip: 10.%d.%d.%d\n    machine-type: unknown\n    roles:\n      - worker\n    labels: {rack: r%d}\n    ssh:\n      password: %x\n",
			i, 1+i/62500, i/250%250, 1+i%250, i/40, uint64(i+1)*0x9e3779b97f4a7c15)
	}
	return b.Bytes()
}

func TestAFolderRemembersItsRevision(t *testing.T) {
	dir := t.TempDir()
	b, err := store.ReadBase(dir)
	require.NoError(t, err)
	assert.Nil(t, b)
	want := store.Base{ClusterID: "pai", Revision: 7, UID: "u"}
	require.NoError(t, want.Write(dir))
	b, err = store.ReadBase(dir)
	require.NoError(t, err)
	assert.Equal(t, &want, b)
	require.NoError(t, os.WriteFile(dir+"/"+store.BaseFile, []byte("revision: x\n"), 0o600))
	_, err = store.ReadBase(dir)
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "delete it")
}

func TestTheNamespaceKeepsWhatOthersChose(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kube.SystemNamespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}})
	require.NoError(t, store.EnsureNamespace(t.Context(), client))
	n, err := client.CoreV1().Namespaces().Get(t.Context(), kube.SystemNamespace, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted",
		"app.kubernetes.io/managed-by": "paictl"}, n.Labels)
}

func TestRevisionsOfAConfigurationThatWasDeletedDoNotComeBack(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	first := mustPush(t, s, store.Candidate{Dir: "cluster", Files: edit(t, files(t), config.ServicesFile, "v1.0.0", "v0.9.0")})
	mustPush(t, s, store.Candidate{Dir: "cluster", Files: files(t), Base: base(first)})
	require.NoError(t, client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(t.Context(), store.ConfigMapName, metav1.DeleteOptions{}))

	want := files(t)
	again := mustPush(t, s, store.Candidate{Dir: "cluster", Files: want})
	require.Equal(t, 1, again.Number)
	mustPush(t, s, store.Candidate{Dir: "cluster", Files: edit(t, want, config.LayoutFile, "hunter2-of-ssh", "hunter2-of-all"), Base: base(again)})
	c, err := s.At(t.Context(), 1)
	require.NoError(t, err)
	for name, text := range want {
		assert.Equal(t, string(text), string(c.Files[name]), name)
	}
}
